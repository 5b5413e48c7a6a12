// Our tree to and from nlohmann's: the library parses and prints, this file bounds what it is given.
#include "common/json.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "common/printable.h"

namespace causeway {
namespace {

using Library = nlohmann::ordered_json;
constexpr int deepest = 32;  // deeper than any document of ours; a parser's stack is not for a peer to spend

/// Nesting by counting brackets outside strings: known before the recursive conversion starts.
int nesting(std::string_view text) {
    int depth = 0;
    int most = 0;
    bool inside = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inside) {
            i += c == '\\' ? 1 : 0;
            inside = c != '"';
        } else if (c == '"') {
            inside = true;
        } else if (c == '[' || c == '{') {
            most = std::max(most, ++depth);
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return most;
}

Json from_library(const Library& value) {
    switch (value.type()) {
        case Library::value_t::boolean:
            return value.get<bool>();
        case Library::value_t::number_integer:
            return value.get<std::int64_t>();
        case Library::value_t::number_unsigned: {
            const auto number = value.get<std::uint64_t>();
            return number > INT64_MAX ? Json(static_cast<double>(number)) : Json(static_cast<std::int64_t>(number));
        }
        case Library::value_t::number_float:
            return value.get<double>();
        case Library::value_t::string:
            return value.get<std::string>();
        case Library::value_t::array: {
            auto array = Json::array();
            for (const auto& item : value) {
                array.push(from_library(item));
            }
            return array;
        }
        case Library::value_t::object: {
            Json::Object object;
            for (const auto& [key, item] : value.items()) {
                object.emplace_back(key, from_library(item));
            }
            return object;
        }
        default:
            return nullptr;
    }
}

const Json none;
const Json::Array no_items;
const Json::Object no_fields;

void append_text(std::string& out, const std::string& text) {
    out += json_escaped(Library(text).dump(-1, ' ', false, Library::error_handler_t::replace));
}

}  // namespace

Result<Json> Json::parse(std::string_view text, std::size_t limit) {
    if (text.size() > limit) {
        return fail(
            ErrorKind::corrupt, "json_too_long",
            "a JSON text of " + std::to_string(text.size()) + " bytes is over the limit of " + std::to_string(limit));
    }
    if (nesting(text) > deepest) {
        return fail(ErrorKind::corrupt, "json_too_deep", "a JSON text is nested too deeply");
    }
    const auto value = Library::parse(text, nullptr, false);
    if (value.is_discarded()) {
        return fail(ErrorKind::corrupt, "bad_json", "not a JSON text");
    }
    return from_library(value);
}

std::string Json::dump() const {
    std::string out;
    struct Printer {
        std::string& out;
        void operator()(std::monostate) const { out += "null"; }
        void operator()(bool value) const { out += value ? "true" : "false"; }
        void operator()(std::int64_t value) const { out += std::to_string(value); }
        void operator()(double value) const { out += std::isfinite(value) ? Library(value).dump() : "null"; }
        void operator()(const std::string& value) const { append_text(out, value); }
        void operator()(const Array& items) const {
            out += '[';
            for (std::size_t i = 0; i < items.size(); ++i) {
                out += i == 0 ? "" : ",";
                std::visit(*this, items[i].value_);
            }
            out += ']';
        }
        void operator()(const Object& fields) const {
            out += '{';
            for (std::size_t i = 0; i < fields.size(); ++i) {
                out += i == 0 ? "" : ",";
                append_text(out, fields[i].first);
                out += ':';
                std::visit(*this, fields[i].second.value_);
            }
            out += '}';
        }
    };
    std::visit(Printer{out}, value_);
    return out;
}

std::string Json::text(std::string fallback) const {
    const auto* value = std::get_if<std::string>(&value_);
    return value ? *value : std::move(fallback);
}

std::int64_t Json::integer(std::int64_t fallback) const {
    const auto* value = std::get_if<std::int64_t>(&value_);
    return value ? *value : fallback;
}

double Json::number(double fallback) const {
    if (const auto* value = std::get_if<double>(&value_)) {
        return *value;
    }
    const auto* value = std::get_if<std::int64_t>(&value_);
    return value ? static_cast<double>(*value) : fallback;
}

bool Json::boolean(bool fallback) const {
    const auto* value = std::get_if<bool>(&value_);
    return value ? *value : fallback;
}

const Json::Array& Json::items() const {
    const auto* value = std::get_if<Array>(&value_);
    return value ? *value : no_items;
}

const Json::Object& Json::fields() const {
    const auto* value = std::get_if<Object>(&value_);
    return value ? *value : no_fields;
}

const Json& Json::operator[](std::string_view key) const {
    for (const auto& [name, value] : fields()) {
        if (name == key) {
            return value;
        }
    }
    return none;
}

Json& Json::set(std::string key, Json value) {
    if (!is_object()) {
        value_ = Object{};
    }
    auto& object = std::get<Object>(value_);
    const auto known = std::ranges::find(object, key, &Object::value_type::first);
    if (known != object.end()) {
        known->second = std::move(value);
    } else {
        object.emplace_back(std::move(key), std::move(value));
    }
    return *this;
}

Json& Json::push(Json value) {
    if (!is_array()) {
        value_ = Array{};
    }
    std::get<Array>(value_).push_back(std::move(value));
    return *this;
}

}  // namespace causeway
