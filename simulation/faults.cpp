// See faults.h. Each kind is one function of the world, a client, an absence and random numbers of its own.
#include "simulation/faults.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

struct Occasion {
    World& world;
    std::size_t client;
    Duration absence;
    RandomStream& random;

    bool coin() { return random.below(2) == 0; }
    std::uint32_t effects() { return static_cast<std::uint32_t>(random.below(40)); }
};

void lose(Occasion on) {
    on.coin() ? on.world.cut(on.client) : on.world.break_transfers(on.client);
}
void corrupt(Occasion on) {
    on.world.corrupt(on.client, on.coin() ? Side::client : Side::coordinator);
}
void partition(Occasion on) {
    const bool all = on.random.below(4) == 0;
    for (std::size_t i = 0; i < on.world.client_count(); ++i) {
        if (all || on.coin()) {
            on.world.stall(i, on.absence);
        }
    }
}
void block_one_way(Occasion on) {
    on.world.block(on.client, on.coin() ? Side::client : Side::coordinator, on.absence);
}
void slow_down(Occasion on) {
    const auto factor = 2 + 18 * on.random.uniform();
    on.coin() ? on.world.slow_link(on.client, factor, on.absence) : on.world.slow_client(on.client, factor, on.absence);
}
void crash_coordinator(Occasion on) {
    on.world.crash_coordinator_after(on.effects(), on.absence);
}
void crash_client(Occasion on) {
    on.world.crash_client_after(on.client, on.effects(), on.absence);
}
void harm_store(Occasion on) {
    switch (on.random.below(3)) {
        case 0:
            return on.world.cut_coordinator_power(on.random, on.absence);
        case 1:
            return on.world.cut_client_power(on.client, on.absence);
        default:
            return on.world.slow_store(Duration(on.random.below(1'000'000'000)), on.absence);
    }
}
/// Rates within 10 %, far above any quartz; jumps up to the absence.
void skew(Occasion on) {
    const auto who = on.random.below(3) == 0 ? World::coordinator_process : on.client;
    on.coin() ? on.world.set_clock_rate(who, 0.9 + 0.2 * on.random.uniform()) : on.world.jump_clock(who, on.absence);
}
void stop(Occasion on) {
    on.world.stop_process(on.random.below(3) == 0 ? World::coordinator_process : on.client, on.absence);
}
void lie(Occasion on) {
    for (auto words = 1 + on.random.below(4); words > 0; --words) {
        on.world.lie(liar, on.random);
    }
}
void fill_disk(Occasion on) {
    on.world.fill_disk(on.random.below(3) == 0 ? on.client : World::coordinator_process, on.absence);
}
/// Mostly beyond what nodes wait for it: they give its connections up and come back.
void stall_coordinator(Occasion on) {
    on.world.stop_process(World::coordinator_process, on.absence);
}

struct FaultKind {
    const char* name;
    void (*happen)(Occasion);
};
constexpr FaultKind kinds[] = {
    {"loss", lose},
    {"corruption", corrupt},
    {"partition", partition},
    {"asymmetric", block_one_way},
    {"slow", slow_down},
    {"crash-coordinator", crash_coordinator},
    {"crash-client", crash_client},
    {"store", harm_store},
    {"skew", skew},
    {"stop", stop},
    {"lying", lie},
    {"disk", fill_disk},
    {"coordinator-stalls", stall_coordinator},
};

}  // namespace

const std::vector<std::string>& fault_names() {
    static const auto names = [] {
        std::vector<std::string> all;
        for (const auto& kind : kinds) {
            all.emplace_back(kind.name);
        }
        return all;
    }();
    return names;
}

Result<std::vector<Fault>> parse_faults(std::string_view text) {
    std::vector<Fault> chosen;
    if (text == "none") {
        return chosen;
    }
    const auto& names = fault_names();
    for (const auto& word : split_text(text, ',')) {
        const auto name = std::string(trim(word));
        const auto found = std::ranges::find(names, name);
        if (name != "all" && found == names.end()) {
            const auto nearest = nearest_name(name, names);
            return fail(ErrorKind::invalid, "unknown_fault",
                        fmt::format("no failures are called \"{}\"{}; there are: none, all, {}", name,
                                    nearest ? ", did you mean \"" + *nearest + "\"" : "", join(names, ", ")));
        }
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (name == "all" || names[i] == name) {
                chosen.push_back(static_cast<Fault>(i));
            }
        }
    }
    return chosen;
}

/// When and whom is drawn beforehand, so that a plan is the same whatever the world does meanwhile.
void plan_faults(World& world, const FaultPlan& plan) {
    RandomStream random({.seed = plan.seed, .purpose = "faults"});
    for (std::uint32_t i = 0; !plan.kinds.empty() && i < plan.count; ++i) {
        const auto kind = plan.kinds[random.below(plan.kinds.size())];
        const auto client = random.below(world.client_count());
        const auto begin = Duration(random.below(static_cast<std::uint64_t>(plan.time.count())));
        const auto longest = std::min(plan.longest_absence, plan.time - begin);
        const auto absence =
            Duration(random.below(static_cast<std::uint64_t>(std::max<std::int64_t>(longest.count(), 1))));
        world.at(world.now() + begin, [&world, kind, client, absence, seed = plan.seed, i] {
            RandomStream own({.seed = seed, .purpose = "fault", .step = i});
            kinds[static_cast<std::size_t>(kind)].happen({world, client, absence, own});
        });
    }
}

bool lies(const std::vector<Fault>& chosen, std::size_t client) {
    return client == liar && std::ranges::find(chosen, Fault::lying) != chosen.end();
}

}  // namespace causeway::simulation
