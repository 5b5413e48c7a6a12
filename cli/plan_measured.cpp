// See plan_measured.h.
#include "cli/plan_measured.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "cli/layer_times.h"
#include "model/segment.h"

namespace causeway::cli {
namespace {

constexpr double slowest = 10'000;  // of a machine that was stopped meanwhile: more is no speed
constexpr double fastest = 0.01;

/// Where a number is, and is one that a rate or a time can be.
std::optional<double> positive(const Json& value) {
    const bool number = value.is_number() && value.number() > 0;
    return number ? std::optional(value.number()) : std::nullopt;
}

/// Of rates, where 0 is none yet.
double slower_of(double known, double rate) {
    return known > 0 ? std::min(known, rate) : rate;
}

/// How many times as long as this machine the node took for its last work; nothing: it has done none.
Result<std::optional<double>> slowness_of(const Json& node, const Json& experiments, const ExampleSeconds& here) {
    const auto& work = node["work"];
    const auto experiment = experiments[std::to_string(work["experiment"].integer())];
    const auto took = positive(work["seconds"]);
    const auto examples = positive(work["examples"]);
    if (!took || !examples || !experiment.has("architecture")) {
        return std::optional<double>();
    }
    TRY_ASSIGN(const double own, here(experiment, work["layers"].text()));
    return own > 0 ? std::optional(std::clamp(*took / *examples / own, fastest, slowest)) : std::nullopt;
}

}  // namespace

Status use_measurements(const Json& measured, const std::vector<std::string>& hosts, const ExampleSeconds& here,
                        PlanCast& cast) {
    const auto& experiments = measured["experiments"];
    for (auto& client : cast.clients) {
        const auto& node = measured["nodes"][client.name];
        auto& assumed = cast.assumed[client.name];
        const auto round_trip = positive(node["round_trip_seconds"]);
        const auto up = positive(node["uplink"]);
        const auto down = positive(node["downlink"]);
        client.delay = round_trip ? *round_trip / 2 : client.delay;
        client.uplink = up.value_or(client.uplink);
        client.downlink = down.value_or(client.downlink);
        TRY_ASSIGN(const auto slowness, slowness_of(node, experiments, here));
        client.slowness = slowness.value_or(client.slowness);
        for (const auto& [known, what] : {std::pair{up.has_value(), "uplink"}, std::pair{down.has_value(), "downlink"},
                                          std::pair{round_trip.has_value(), "delay"},
                                          std::pair{slowness.has_value(), "speed"}}) {
            if (!known) {
                assumed.emplace_back(what);
            }
        }
    }
    for (const auto& name : hosts) {
        const auto& node = measured["nodes"][name];
        TRY_ASSIGN(const auto slowness, slowness_of(node, experiments, here));
        const auto up = positive(node["uplink"]);
        if (slowness) {
            cast.host.slowness = cast.host_measured ? std::max(cast.host.slowness, *slowness) : *slowness;
            cast.host_measured = true;
        } else {
            cast.assumed[name].emplace_back("speed");
        }
        const auto down = positive(node["downlink"]);
        cast.host.downlink = down ? slower_of(cast.host.downlink, *down) : cast.host.downlink;
        cast.host.delay = std::max(cast.host.delay, positive(node["round_trip_seconds"]).value_or(0.0) / 2);
        if (up) {
            cast.host.uplink = slower_of(cast.host.uplink, *up);
        } else {
            cast.assumed[name].emplace_back("uplink");
        }
    }
    std::erase_if(cast.assumed, [](const auto& entry) { return entry.second.empty(); });
    return {};
}

ExampleSeconds seconds_on_this_machine() {
    struct Known {
        Chain chain;
        LayerTimes times;
        std::uint32_t batch = 1;
    };
    const auto known = std::make_shared<std::map<std::string, Known>>();
    return [known](const Json& experiment, const std::string& layers) -> Result<double> {
        const auto key = experiment.dump();
        if (!known->contains(key)) {
            constexpr std::int64_t usual_batch = 256;  // where a batch is all that a client has
            const auto batch = experiment["batch"].integer() > 0 ? experiment["batch"].integer() : usual_batch;
            TRY_ASSIGN(auto chain, Chain::from_architecture(experiment["architecture"].text()));
            TRY_ASSIGN(const auto optimizer, parse_optimizer(experiment["optimizer"].text()));
            TRY_ASSIGN(auto times, measure_layers(chain, optimizer, static_cast<std::uint32_t>(batch),
                                                  std::chrono::milliseconds(200)));
            known->emplace(key, Known{std::move(chain), std::move(times), static_cast<std::uint32_t>(batch)});
        }
        const auto& of = known->at(key);
        const auto all = static_cast<std::uint32_t>(of.chain.layer_count());
        std::vector<LayerInterval> parts{{0, all}};
        if (!layers.empty()) {
            TRY_ASSIGN(parts, parse_intervals(layers));
            TRY(Segment::make(of.chain, parts));
        }
        double seconds = 0;
        for (const auto& part : parts) {
            for (std::size_t i = part.begin; i < part.end; ++i) {
                seconds += of.times.forward[i] + of.times.backward[i] + of.times.step[i];
            }
            seconds += part.end == all ? of.times.loss : 0;
        }
        return seconds / of.batch;
    };
}

}  // namespace causeway::cli
