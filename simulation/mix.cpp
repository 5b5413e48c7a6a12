// See mix.h.
#include "simulation/mix.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/random.h"
#include "common/text.h"

namespace causeway::simulation {
namespace {

auto bad_mix(std::string_view text, const std::string& why) {
    return fail(ErrorKind::invalid, "bad_mix", fmt::format("\"{}\": {}", text, why));
}

/// A positive number and its unit.
struct Quantity {
    double value = 0;
    std::string_view unit;
};
std::optional<Quantity> parse_quantity(std::string_view text) {
    Quantity quantity;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.value);
    if (error != std::errc{} || !(quantity.value > 0) || !std::isfinite(quantity.value)) {
        return std::nullopt;
    }
    quantity.unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
    return quantity;
}

/// In bytes a second.
Result<double> parse_rate(std::string_view text) {
    const auto quantity = parse_quantity(text);
    const auto unit = quantity ? quantity->unit : "";
    const double bits = unit == "kbit" ? 1e3 : unit == "mbit" ? 1e6 : unit == "gbit" ? 1e9 : 0;
    if (bits == 0) {
        return bad_mix(text, "a rate is a number and kbit, mbit or gbit, for instance 10mbit");
    }
    return quantity->value * bits / 8;
}

/// parse_duration's units and us.
Result<Duration> parse_time(std::string_view text) {
    if (const auto quantity = parse_quantity(text); quantity && quantity->unit == "us") {
        return from_seconds(quantity->value * 1e-6);
    }
    const auto time = parse_duration(text);
    return time ? time : bad_mix(text, "a time is a number and us, ms, s or m, for instance 20ms");
}

struct Class {
    double share = 0;
    std::string what;
};

Result<std::vector<Class>> parse_classes(std::string_view text) {
    std::vector<Class> classes;
    double sum = 0;
    for (const auto& one : split_text(text, ';')) {
        const auto part = trim(one);
        const auto percent = part.find('%');
        const auto share = parse_quantity(part.substr(0, std::min(percent, part.size())));
        if (percent == std::string_view::npos || !share || !share->unit.empty()) {
            return bad_mix(part, "a class begins with its share of the clients, for instance 80%");
        }
        classes.push_back({share->value / 100, std::string(trim(part.substr(percent + 1)))});
        sum += share->value;
    }
    constexpr double tolerance = 0.1;  // thirds, written with one digit after the point
    if (std::abs(sum - 100) > tolerance) {
        return bad_mix(text, fmt::format("the shares add up to {:g} %, not to 100 %", sum));
    }
    return classes;
}

/// The class of each client: exact shares, in an order drawn from the seed.
std::vector<std::size_t> assign(const std::vector<Class>& classes, std::size_t clients, std::uint64_t seed,
                                std::string_view purpose) {
    RandomStream random({.seed = seed, .purpose = purpose});
    const auto order = random.permutation(clients);
    std::vector<std::size_t> chosen(clients, classes.size() - 1);
    double until = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < classes.size(); ++i) {
        until += classes[i].share * static_cast<double>(clients);
        for (; next < clients && static_cast<double>(next) + 0.5 < until; ++next) {
            chosen[order[next]] = i;
        }
    }
    return chosen;
}

template <class Value>
Result<std::vector<Value>> per_client(std::string_view text, std::size_t clients, std::uint64_t seed,
                                      std::string_view purpose, Result<Value> (*parse)(std::string_view)) {
    TRY_ASSIGN(const auto classes, parse_classes(text));
    std::vector<Value> values;
    for (const auto& one : classes) {
        TRY_ASSIGN(auto value, parse(one.what));
        values.push_back(std::move(value));
    }
    std::vector<Value> all;
    for (const auto chosen : assign(classes, clients, seed, purpose)) {
        all.push_back(values[chosen]);
    }
    return all;
}

}  // namespace

Result<LinkOptions> parse_link(std::string_view text) {
    LinkOptions link;
    bool downlink_given = false;
    for (const auto& one : split_text(text, ',')) {
        const auto part = trim(one);
        const auto equals = std::min(part.find('='), part.size());
        const auto name = trim(part.substr(0, equals));
        const auto value = trim(part.substr(std::min(equals + 1, part.size())));
        if (name == "uplink") {
            TRY_ASSIGN(link.up.rate, parse_rate(value));
        } else if (name == "downlink") {
            TRY_ASSIGN(link.down.rate, parse_rate(value));
            downlink_given = true;
        } else if (name == "delay") {
            TRY_ASSIGN(link.up.delay, parse_time(value));
            link.down.delay = link.up.delay;
        } else {
            return bad_mix(part, "a link has uplink=, downlink= and delay=, for instance uplink=10mbit,delay=20ms");
        }
    }
    link.down.rate = downlink_given ? link.down.rate : link.up.rate;
    return link;
}

Result<std::vector<LinkOptions>> parse_links(std::string_view text, std::size_t clients, std::uint64_t seed) {
    return per_client<LinkOptions>(text, clients, seed, "link classes", parse_link);
}

Result<std::vector<Duration>> parse_speeds(std::string_view text, std::size_t clients, std::uint64_t seed) {
    return per_client<Duration>(text, clients, seed, "speed classes", parse_time);
}

}  // namespace causeway::simulation
