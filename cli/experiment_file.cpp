// Looking things up, with what to do next in every refusal.
#include "cli/experiment_file.h"

#include <system_error>

#include <fmt/format.h>

#include "common/bytes.h"
#include "common/file.h"
#include "common/system_error.h"
#include "common/text.h"
#include "configs/checks.h"
#include "configs/examples.h"
#include "configs/reader.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_dataset_name = 64;

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= longest_dataset_name &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
               std::string_view::npos;
}

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

/// Where ./quickstart puts datasets: beside the build of this binary, or in an installation's share folder.
std::vector<fs::path> installed_places(const std::string& name) {
    const auto folder = own_path().parent_path();
    return {folder / ".." / "data" / (name + ".csv.gz"), folder / ".." / "share" / "causeway" / (name + ".csv.gz")};
}

/// `option` and `example` are for the messages.
Result<DataPaths> parse_named_paths(const std::vector<std::string>& arguments, std::string_view option,
                                    std::string_view example) {
    DataPaths paths;
    for (const auto& argument : arguments) {
        const auto at = argument.find('=');
        const auto name = argument.substr(0, at);
        if (at == std::string::npos || !is_name(name)) {
            return fail(ErrorKind::invalid, "bad_data_argument",
                        fmt::format("{0} {1}: write NAME=PATH, as in {0} {2}", option, argument, example));
        }
        const fs::path path = argument.substr(at + 1);
        if (const auto there = check_there(path); !there) {
            return fail(with_context(there.error(), fmt::format("{} {}", option, argument)));
        }
        if (!paths.emplace(name, path).second) {
            return fail(ErrorKind::invalid, "bad_data_argument",
                        fmt::format("{} {}: {} is given twice", option, argument, name));
        }
    }
    return paths;
}

}  // namespace

Result<ExperimentText> load_experiment_text(const std::string& file_or_example) {
    const fs::path path = file_or_example;
    const auto there = check_there(path);
    if (!there && there.error().kind != ErrorKind::not_found) {
        return fail(there.error());
    }
    if (there) {
        TRY_ASSIGN(const auto bytes, read_file(path, max_experiment_bytes));
        return ExperimentText{std::string(as_text(bytes)), file_or_example};
    }
    if (path.has_extension() || path.has_parent_path()) {
        return fail(ErrorKind::not_found, "no_such_file", file_or_example + ": no such experiment file");
    }
    auto text = find_example(file_or_example);
    if (!text) {
        auto error = text.error();
        error.message = fmt::format("{}: no such file, and {}", file_or_example, error.message);
        return fail(error);
    }
    return ExperimentText{*std::move(text), file_or_example + ".toml"};
}

Status check_state_argument(const std::string& state) {
    std::error_code ignored;
    if (fs::exists(state, ignored) && !fs::is_directory(state, ignored)) {
        return fail(ErrorKind::invalid, "not_a_folder",
                    fmt::format("--state {}: is a file; name a folder, which is made if it does not exist", state));
    }
    return {};
}

Result<Duration> parse_duration_option(std::string_view option, const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) {
        return fail(duration.error().kind, duration.error().code,
                    fmt::format("{}: {}", option, duration.error().message));
    }
    return *duration;
}

Result<Experiment> load_experiment(const std::string& file_or_example, const std::vector<std::string>& set) {
    TRY_ASSIGN(const auto text, load_experiment_text(file_or_example));
    auto experiment = read_experiment(text.text, text.file_name, set);
    if (!experiment) {
        return fail(ErrorKind::invalid, "bad_configuration", to_text(experiment.error()));
    }
    return *std::move(experiment);
}

Result<DataPaths> parse_data_arguments(const std::vector<std::string>& arguments) {
    return parse_named_paths(arguments, "--data", "digits=part-1.csv.gz");
}

Result<DataPaths> parse_model_arguments(const std::vector<std::string>& arguments) {
    return parse_named_paths(arguments, "--model", "pretrained=model.safetensors");
}

Result<fs::path> find_dataset(const std::string& name, const DataPaths& given) {
    if (const auto known = given.find(name); known != given.end()) {
        return known->second;
    }
    for (const auto& place : installed_places(name)) {
        if (is_there(place)) {
            std::error_code ignored;
            const auto real = fs::weakly_canonical(place, ignored);
            return real.empty() ? place : real;
        }
    }
    return fail(ErrorKind::not_found, "unknown_dataset",
                fmt::format("dataset \"{0}\" is not on this machine; say where it lies with --data {0}=PATH{1}", name,
                            name == "digits" ? ", or run ./quickstart, which fetches it" : ""));
}

Status refuse_other_datasets(const Experiment& experiment, const DataPaths& given) {
    const auto& wanted = experiment.data.dataset;
    for (const auto& [name, path] : given) {
        if (name != wanted) {
            return fail(ErrorKind::invalid, "bad_data_argument",
                        fmt::format("--data {0}={1}: the experiment trains on \"{2}\" and uses no dataset \"{0}\"; "
                                    "did you mean --data {2}={1}?",
                                    name, path.string(), wanted));
        }
    }
    return {};
}

std::string demo_host_name(std::uint32_t index) {
    return "host-" + std::to_string(index + 1);
}

std::string demo_client_name(std::uint32_t index) {
    return fmt::format("client-{}", index + 1);
}

/// All have joined before it is submitted, so with a smaller cohort as many as it draws are enough. What so many
/// clients can never meet is said of what was written, or of --clients.
Status require_all(Experiment& experiment, std::uint32_t clients) {
    auto& sync = experiment.sync;
    sync.min_clients = std::min(clients, sync.cohort.of(clients));
    if (sync.cohort.kind == CountOrShare::Kind::share) {
        sync.min_clients = clients;
    }
    experiment.places["sync.min_clients"] = {Place::Origin::command_line, "--clients"};
    for (const auto& found : find_inconsistencies(experiment, [](std::string_view) { return false; })) {
        const auto place = experiment.places.find(std::string(found.path));
        const bool written = place != experiment.places.end() && place->second.origin != Place::Origin::defaulted &&
                             found.path != "sync.min_clients";
        return fail(ErrorKind::invalid, "bad_configuration",
                    fmt::format("{}: {} (with --clients {})", written ? place->second.text() : "--clients",
                                found.message, clients));
    }
    return {};
}

fs::path own_path() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored);
}

}  // namespace causeway::cli
