// JSON values: a small ordered tree, so that nlohmann's header is compiled in json.cpp only.
//
// Objects keep the order in which fields were set: --json output is stable. Parsing has limits on size and depth,
// for some of it comes from peers (operator requests) and files (safetensors headers).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/result.h"

namespace causeway {

class Json {
public:
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;

    Json() = default;
    Json(std::nullptr_t) {}
    Json(bool value) : value_(value) {}
    Json(double value) : value_(value) {}
    Json(int value) : value_(std::int64_t{value}) {}
    Json(unsigned value) : value_(std::int64_t{value}) {}
    Json(std::int64_t value) : value_(value) {}
    Json(std::uint64_t value) : value_(static_cast<std::int64_t>(value)) {}
    Json(const char* value) : value_(std::string(value)) {}
    Json(std::string_view value) : value_(std::string(value)) {}
    Json(std::string value) : value_(std::move(value)) {}
    Json(Array value) : value_(std::move(value)) {}
    Json(Object value) : value_(std::move(value)) {}

    static Json object() { return Json(Object{}); }
    static Json array() { return Json(Array{}); }

    /// errors  corrupt: not JSON, deeper than 32 or longer than `limit` bytes
    static Result<Json> parse(std::string_view text, std::size_t limit = 1 << 20);
    /// One line, no spaces. Non-finite numbers become null.
    [[nodiscard]] std::string dump() const;

    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    [[nodiscard]] bool is_text() const { return std::holds_alternative<std::string>(value_); }
    [[nodiscard]] bool is_number() const {
        return std::holds_alternative<double>(value_) || std::holds_alternative<std::int64_t>(value_);
    }
    [[nodiscard]] bool is_array() const { return std::holds_alternative<Array>(value_); }
    [[nodiscard]] bool is_object() const { return std::holds_alternative<Object>(value_); }

    // Lenient reads: the fallback where the value is missing or of another type.
    [[nodiscard]] std::string text(std::string fallback = {}) const;
    [[nodiscard]] std::int64_t integer(std::int64_t fallback = 0) const;
    [[nodiscard]] double number(double fallback = 0) const;
    [[nodiscard]] bool boolean(bool fallback = false) const;
    [[nodiscard]] const Array& items() const;                          // empty unless an array
    [[nodiscard]] const Object& fields() const;                        // empty unless an object
    [[nodiscard]] const Json& operator[](std::string_view key) const;  // null when absent
    [[nodiscard]] bool has(std::string_view key) const { return !(*this)[key].is_null(); }

    /// Sets a field of an object (replaces an equal key). Returns *this, so that calls chain.
    Json& set(std::string key, Json value);
    Json& push(Json value);

private:
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace causeway
