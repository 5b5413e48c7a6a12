// See mix.h.
#include "simulation/mix.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/random.h"
#include "common/text.h"
#include "simulation/real_work.h"

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

/// "10x": how many times as long.
Result<double> parse_factor(std::string_view text) {
    const auto quantity = parse_quantity(text);
    if (!quantity || quantity->unit != "x") {
        return bad_mix(text, "a factor is a number and x, for instance 10x");
    }
    return quantity->value;
}

/// A time, or so many times the usual one.
Result<Duration> parse_speed(std::string_view text) {
    if (text.ends_with('x')) {
        TRY_ASSIGN(const double factor, parse_factor(text));
        return from_seconds(seconds(training_per_example) * factor);
    }
    return parse_time(text);
}

struct Class {
    double share = 0;
    std::string what;
};

/// What is said of a client by its name, "client-2: 10x".
struct Named {
    std::size_t client = 0;
    std::string what;
};

struct Mix {
    std::vector<Class> classes;
    std::vector<Named> named;
};

/// Nothing where no name stands before a colon.
Result<std::optional<Named>> parse_named(std::string_view part, std::size_t clients) {
    const auto colon = part.find(':');
    if (colon == std::string_view::npos) {
        return std::optional<Named>();
    }
    constexpr std::string_view prefix = "client-";
    const auto name = trim(part.substr(0, colon));
    const auto number = name.starts_with(prefix) ? parse_quantity(name.substr(prefix.size())) : std::nullopt;
    if (!number || !number->unit.empty() || !(number->value <= static_cast<double>(clients)) ||
        number->value != std::floor(number->value)) {
        return bad_mix(part, fmt::format("before the colon stands a client, client-1 to client-{}", clients));
    }
    return std::optional(Named{static_cast<std::size_t>(number->value) - 1, std::string(trim(part.substr(colon + 1)))});
}

/// One class without a share is everybody.
Result<Mix> parse_mix(std::string_view text, std::size_t clients) {
    Mix mix;
    std::vector<Class>& classes = mix.classes;
    double sum = 0;
    for (const auto& one : split_text(text, ';')) {
        const auto part = trim(one);
        TRY_ASSIGN(const auto named, parse_named(part, clients));
        if (named) {
            mix.named.push_back(*named);
            continue;
        }
        if (classes.empty() && part.find('%') == std::string_view::npos) {
            classes.push_back({1, std::string(part)});
            sum = 100;
            continue;
        }
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
    return mix;
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
    TRY_ASSIGN(const auto mix, parse_mix(text, clients));
    std::vector<Value> values;
    for (const auto& one : mix.classes) {
        TRY_ASSIGN(auto value, parse(one.what));
        values.push_back(std::move(value));
    }
    std::vector<Value> all;
    for (const auto chosen : assign(mix.classes, clients, seed, purpose)) {
        all.push_back(values[chosen]);
    }
    for (const auto& [client, what] : mix.named) {
        TRY_ASSIGN(all[client], parse(what));
    }
    return all;
}

Result<ShapedLink> parse_shaped_link(std::string_view text) {
    ShapedLink shaped;
    LinkOptions& link = shaped.link;
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
        } else if (name == "jitter") {
            TRY_ASSIGN(shaped.jitter, parse_time(value));
        } else {
            return bad_mix(part,
                           "a link has uplink=, downlink=, delay= and jitter=, for instance uplink=10mbit,delay=20ms");
        }
    }
    link.down.rate = downlink_given ? link.down.rate : link.up.rate;
    return shaped;
}

}  // namespace

Result<LinkOptions> parse_link(std::string_view text) {
    TRY_ASSIGN(const auto shaped, parse_shaped_link(text));
    if (shaped.jitter > Duration::zero()) {
        return bad_mix(text, "the virtual network has no jitter; leave it out");
    }
    return shaped.link;
}

Result<std::vector<ShapedLink>> parse_shaped_links(std::string_view text, std::size_t clients, std::uint64_t seed) {
    return per_client<ShapedLink>(text, clients, seed, "link classes", parse_shaped_link);
}

Result<std::vector<LinkOptions>> parse_links(std::string_view text, std::size_t clients, std::uint64_t seed) {
    return per_client<LinkOptions>(text, clients, seed, "link classes", parse_link);
}

Result<double> parse_slowness(std::string_view text) {
    constexpr double most = 10'000;  // a second becomes three hours: more is a slip
    TRY_ASSIGN(const double factor, parse_factor(text));
    if (factor < 1 || factor > most) {
        return bad_mix(text, "a machine is made slower, by 1x to 10000x, never faster");
    }
    return factor;
}

Result<std::vector<double>> parse_slownesses(std::string_view text, std::size_t clients, std::uint64_t seed) {
    return per_client<double>(text, clients, seed, "speed classes", parse_slowness);
}

Result<std::vector<double>> parse_factors(std::string_view text, std::size_t clients, std::uint64_t seed) {
    return per_client<double>(text, clients, seed, "speed classes", parse_factor);
}

Result<std::vector<Duration>> parse_speeds(std::string_view text, std::size_t clients, std::uint64_t seed) {
    return per_client<Duration>(text, clients, seed, "speed classes", parse_speed);
}

}  // namespace causeway::simulation
