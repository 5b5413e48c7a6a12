// Reading a profile with the tree of configs/toml_text.h, so that places and words are those of experiment files.
#include "cli/plan_profile.h"

#include <fmt/format.h>

#include "cli/experiment_file.h"
#include "cli/operator_session.h"
#include "cli/plan_measured.h"
#include "cli/simulate_cast.h"
#include "common/file.h"
#include "common/text.h"
#include "configs/toml_text.h"
#include "simulation/mix.h"

namespace causeway::cli {
namespace {

using LayerKindOf = TomlNode::Kind;

constexpr std::uint64_t most_profile_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t most_examples = std::uint64_t{1} << 40;
const std::vector<std::string> client_keys = {"name", "uplink", "downlink", "delay", "speed", "examples"};
const std::vector<std::string> host_keys = {"speed", "uplink", "downlink", "delay", "memory"};

/// One reading; every mistake is kept with its place.
class ProfileReader {
public:
    explicit ProfileReader(TomlText parsed) : tree_(std::move(parsed)), errors_(tree_.errors) {}

    Result<PlanCast> read() {
        PlanCast cast;
        for (const auto& [name, place, value] : tree_.root.members) {
            if (name == "host" && value.kind == LayerKindOf::table) {
                cast.host = read_host(value);
            } else if (name == "client" && value.kind == LayerKindOf::array) {
                for (const auto& item : value.items) {
                    cast.clients.push_back(read_client(item));
                }
            } else {
                wrong(place, fmt::format("\"{}\" is not [host] or [[client]]", name.substr(0, 80)));
            }
        }
        if (cast.clients.empty() && errors_.empty()) {
            wrong(tree_.root.place, "a profile has a [[client]] for each client");
        }
        if (!errors_.empty()) {
            return fail(ErrorKind::invalid, "bad_profile", to_text(in_order(std::move(errors_))));
        }
        return cast;
    }

private:
    void wrong(const Place& place, std::string message) { errors_.push_back({place, std::move(message)}); }

    void check_keys(const TomlNode& table, const std::vector<std::string>& known) {
        for (const auto& member : table.members) {
            if (std::ranges::find(known, member.name) == known.end()) {
                const auto shown = member.name.substr(0, 80);
                wrong(member.place, fmt::format("unknown key \"{}\"; {}", shown, name_hint(shown, known)));
            }
        }
    }

    /// A text that `parse` understands; what is missing keeps its value.
    template <class Parse>
    void read_text(const TomlNode& table, std::string_view key, Parse parse) {
        const auto* node = table.find(key);
        if (node == nullptr) {
            return;
        }
        const Status read =
            node->kind == LayerKindOf::text
                ? parse(node->text)
                : Status(fail(ErrorKind::invalid, "bad_profile", fmt::format("{} must be a text", key)));
        if (!read) {
            wrong(node->place, read.error().message);
        }
    }

    void read_speed(const TomlNode& table, double& slowness) {
        read_text(table, "speed", [&](const std::string& text) -> Status {
            TRY_ASSIGN(const auto factors, simulation::parse_factors(text, 1, 0));
            slowness = factors.front();
            return {};
        });
    }

    PlanHost read_host(const TomlNode& table) {
        check_keys(table, host_keys);
        PlanHost host;
        read_speed(table, host.slowness);
        read_text(table, "uplink", [&](const std::string& text) -> Status {
            TRY_ASSIGN(const auto link, simulation::parse_link("uplink=" + text));
            host.uplink = host.downlink = link.up.rate;
            return {};
        });
        read_text(table, "downlink", [&](const std::string& text) -> Status {
            TRY_ASSIGN(const auto link, simulation::parse_link("uplink=1gbit,downlink=" + text));
            host.downlink = link.down.rate;
            return {};
        });
        read_text(table, "delay", [&](const std::string& text) -> Status {
            TRY_ASSIGN(const auto link, simulation::parse_link("uplink=1gbit,delay=" + text));
            host.delay = seconds(link.up.delay);
            return {};
        });
        read_text(table, "memory", [&](const std::string& text) -> Status {
            const auto bytes = parse_size(text);
            if (!bytes) {
                return fail(ErrorKind::invalid, "bad_profile", "memory is a size, such as \"8GB\"");
            }
            host.memory = *bytes;
            return {};
        });
        return host;
    }

    PlanClient read_client(const TomlNode& table) {
        PlanClient client;
        if (table.kind != LayerKindOf::table) {
            wrong(table.place, "a client is a table");
            return client;
        }
        check_keys(table, client_keys);
        read_text(table, "name", [&](const std::string& text) -> Status {
            client.name = text;
            return {};
        });
        if (client.name.empty()) {
            wrong(table.place, "a [[client]] lacks name; for example name = \"north\"");
        }
        read_link(table, client);
        read_speed(table, client.slowness);
        read_examples(table, client);
        return client;
    }

    void read_link(const TomlNode& table, PlanClient& client) {
        simulation::LinkOptions link;
        if (table.find("uplink") == nullptr) {
            wrong(table.place, "a [[client]] lacks uplink; for example uplink = \"2mbit\"");
        }
        for (const std::string key : {"uplink", "downlink", "delay"}) {
            read_text(table, key, [&](const std::string& text) -> Status {
                TRY_ASSIGN(const auto part, simulation::parse_link(key + "=" + text));
                if (key == "delay") {
                    link.up.delay = part.up.delay;
                } else if (key == "downlink") {
                    link.down.rate = part.down.rate;
                } else {
                    link.up.rate = link.down.rate = part.up.rate;
                }
                return {};
            });
        }
        client.uplink = link.up.rate;
        client.downlink = link.down.rate;
        client.delay = seconds(link.up.delay);
    }

    void read_examples(const TomlNode& table, PlanClient& client) {
        const auto* node = table.find("examples");
        if (node == nullptr) {
            return;
        }
        const bool right = node->kind == LayerKindOf::integer && node->integer >= 0 &&
                           static_cast<std::uint64_t>(node->integer) <= most_examples;
        if (!right) {
            wrong(node->place, "examples is a whole number of at least 0");
            return;
        }
        client.examples = static_cast<std::uint64_t>(node->integer);
    }

    TomlText tree_;
    std::vector<ConfigError> errors_;
};

/// Over what is known: the options' links and speeds, by the order of the clients.
Status apply_mixes(const PlanOptions& options, std::uint64_t seed, PlanCast& cast) {
    constexpr simulation::LinkOptions ordinary = simulation::both_ways(std::chrono::milliseconds(5), 12.5e6);
    std::vector<simulation::LinkOptions> links(cast.clients.size(), ordinary);
    std::vector<double> factors(cast.clients.size(), 1.0);
    if (!options.link.empty()) {
        TRY_ASSIGN(links, simulation::parse_links(options.link, cast.clients.size(), seed));
    }
    if (!options.slow.empty()) {
        TRY_ASSIGN(factors, simulation::parse_factors(options.slow, cast.clients.size(), seed));
    }
    for (std::size_t i = 0; i < cast.clients.size(); ++i) {
        auto& client = cast.clients[i];
        client.uplink = links[i].up.rate;
        client.downlink = links[i].down.rate;
        client.delay = seconds(links[i].up.delay);
        client.slowness = factors[i];
    }
    cast.source += fmt::format("\n{}links: {}; speeds: {}", cast.from_nodes ? "where nothing was measured, " : "",
                               options.link.empty() ? "100mbit, 5ms" : options.link,
                               options.slow.empty() ? "1x" : options.slow);
    return {};
}

/// Of the hosts that are there: their names, and all their memory, if each says how much it has.
std::vector<std::string> find_hosts(const Json& nodes, PlanHost& host) {
    std::vector<std::string> names;
    bool all_say = true;
    for (const auto& node : nodes.items()) {
        if (node["role"].text() == "host" && node["state"].text() == "online") {
            names.push_back(node["node"].text());
            all_say = all_say && node["memory"].is_number();
            host.memory += node["memory"].is_number() ? static_cast<std::uint64_t>(node["memory"].integer()) : 0;
        }
    }
    host.memory = all_say ? host.memory : 0;
    return names;
}

/// The coordinator's clients that hold the dataset, with as many examples as they declare; links and speeds as they
/// were measured, over what the options say of those that were not.
Result<PlanCast> from_coordinator(const PlanOptions& options, const Experiment& experiment) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto reply, session->ask("node.list", Json::object()));
    TRY_ASSIGN(const auto measured, session->ask("node.measurements", Json::object()));
    PlanCast cast;
    cast.from_nodes = true;
    const auto hosts = find_hosts(reply["nodes"], cast.host);
    for (const auto& node : reply["nodes"].items()) {
        for (const auto& dataset : node["datasets"].items()) {
            if (node["role"].text() == "client" && dataset["name"].text() == experiment.data.dataset) {
                cast.clients.push_back({.name = node["node"].text(),
                                        .examples = static_cast<std::uint64_t>(dataset["examples"].integer())});
            }
        }
    }
    if (cast.clients.empty()) {
        return fail(ErrorKind::not_found, "no_clients",
                    fmt::format("no node of this federation declares the dataset \"{}\"; plan without --state, or let "
                                "nodes join with --data {}=PATH",
                                experiment.data.dataset, experiment.data.dataset));
    }
    cast.source = fmt::format("the {} nodes that declare \"{}\"", cast.clients.size(), experiment.data.dataset);
    TRY(apply_mixes(options, experiment.experiment.seed, cast));
    TRY(use_measurements(measured, hosts, seconds_on_this_machine(), cast));
    return cast;
}

/// As the demo would divide the dataset, or equal ones of a given size.
Result<PlanCast> from_options(const PlanOptions& options, const Experiment& experiment) {
    PlanCast cast;
    for (std::uint32_t i = 0; i < options.clients; ++i) {
        cast.clients.push_back({.name = demo_client_name(i), .examples = options.examples});
    }
    if (options.examples > 0) {
        cast.source = fmt::format("{} clients of {} examples", options.clients, options.examples);
        return cast;
    }
    TRY_ASSIGN(const auto paths, parse_data_arguments(options.data));
    auto parts = demo_parts(experiment, paths, options.clients);
    if (!parts) {
        auto error = parts.error();
        error.message += "; or say how many examples each client has with --examples N";
        return fail(std::move(error));
    }
    for (std::uint32_t i = 0; i < options.clients; ++i) {
        cast.clients[i].examples = parts->of_clients[i].size();
    }
    cast.source = fmt::format("{} clients as the demo divides \"{}\"", options.clients, experiment.data.dataset);
    return cast;
}

}  // namespace

Result<PlanCast> parse_profile(std::string_view text, const std::string& file_name) {
    return ProfileReader(parse_toml(text, file_name)).read();
}

Result<PlanCast> plan_cast(const PlanOptions& options, const Experiment& experiment) {
    if (options.profile.empty()) {
        if (!options.state.empty()) {
            return from_coordinator(options, experiment);
        }
        TRY_ASSIGN(auto cast, from_options(options, experiment));
        TRY(apply_mixes(options, experiment.experiment.seed, cast));
        return cast;
    }
    if (!options.link.empty() || !options.slow.empty()) {
        return fail(ErrorKind::invalid, "usage", "--profile has the links and speeds; leave out --link and --slow");
    }
    TRY_ASSIGN(const auto file, read_file(options.profile, most_profile_bytes));
    TRY_ASSIGN(auto cast, parse_profile(as_text(file), options.profile));
    for (auto& client : cast.clients) {
        if (client.examples == 0) {
            client.examples = options.examples;
        }
        if (client.examples == 0) {
            return fail(ErrorKind::invalid, "bad_profile",
                        fmt::format("{}: {} has no examples = N, and no --examples N says how many it has",
                                    options.profile, client.name));
        }
    }
    cast.source = options.profile;
    return cast;
}

}  // namespace causeway::cli
