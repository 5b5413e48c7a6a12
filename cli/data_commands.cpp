// `data inspect` and `data split`: datasets of this machine, without any federation.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "common/system_error.h"
#include "common/text.h"
#include "configs/dataset_file.h"
#include "data/data_options.h"
#include "data/inspect.h"
#include "data/write.h"

namespace causeway::cli {
namespace {

Result<TableForm> form_of(const FormOptions& given) {
    const std::array words{&given.header, &given.separator, &given.encoding, &given.decimal, &given.quote};
    TableForm form;
    for (std::size_t i = 0; i < words.size(); ++i) {
        TRY(set_table_form(form, table_form_keys()[i], *words[i]).map_error([](Error error) {
            return Error{error.kind, error.code, "--" + error.message};
        }));
    }
    return form;
}

Result<DataOptions> inspect_options(const InspectOptions& given) {
    DataOptions options;
    options.label = given.label;
    if (!given.shape.empty()) {
        TRY_ASSIGN(options.shape, parse_shape(given.shape));
    }
    if (!given.scale.empty()) {
        TRY_ASSIGN(options.scale, parse_scale(given.scale));
    }
    TRY_ASSIGN(options.form, form_of(given.form));
    const auto wrong = check_data_options(options);
    if (!wrong.empty()) {
        return fail(wrong.front());
    }
    return options;
}

/// "20%" or "0.2".
Result<double> parse_share(std::string_view text) {
    const bool percent = text.ends_with('%');
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end + (percent ? 1 : 0) != text.data() + text.size() || !(value >= 0)) {
        return fail(ErrorKind::invalid, "bad_share", fmt::format("--holdout {}: write a share such as 20%", text));
    }
    return percent ? value / 100 : value;
}

struct NamedPath {
    std::string name;
    std::filesystem::path path;
};

/// `digits`, `digits=PATH` or a path.
Result<NamedPath> find_data(const std::string& given) {
    const std::filesystem::path path = given;
    const bool named = given.find('=') != std::string::npos;
    const auto there = named ? Status() : check_there(path);
    if (!named && there) {
        return NamedPath{path.stem().stem().string(), path};
    }
    if (!named && (path.has_extension() || path.has_parent_path() || there.error().kind != ErrorKind::not_found)) {
        return fail(there.error());
    }
    TRY_ASSIGN(const auto paths, parse_data_arguments(named ? std::vector{given} : std::vector<std::string>{}));
    const auto name = given.substr(0, given.find('='));
    auto found = find_dataset(name, paths);
    if (!found && name != "digits") {
        return fail(ErrorKind::not_found, "unknown_dataset",
                    given + ": neither a file or folder nor a dataset that comes with Causeway (digits)");
    }
    TRY(found);
    return NamedPath{name, *std::move(found)};
}

/// The label column defaults to the last one of a CSV.
Result<Dataset> raw_dataset(const SplitOptions& options, const NamedPath& found) {
    DataOptions reading;
    const bool text_file = found.path.string().find(".csv") != std::string::npos;
    TRY_ASSIGN(reading.form, form_of(options.form));
    reading.label = options.label.empty() && text_file ? "last" : options.label;
    TRY_ASSIGN(auto file, read_dataset_file(found.path, reading));
    TRY_ASSIGN(auto dataset, std::move(file).whole());
    dataset.name = found.name;
    return dataset;
}

Result<std::vector<WrittenPart>> split(const SplitOptions& options, std::string& name) {
    DividePlan plan;
    plan.parts = options.parts;
    plan.seed = options.seed;
    TRY_ASSIGN(plan.holdout, parse_share(options.holdout));
    TRY_ASSIGN(plan.partition, parse_partition(options.partition));
    TRY_ASSIGN(const auto found, find_data(options.data));
    TRY_ASSIGN(const auto dataset, raw_dataset(options, found));
    name = dataset.name;
    return write_split(dataset, plan, options.out, {output_mode({found.path}), existing_of(options.force)});
}

}  // namespace

int run_data_inspect(const InspectOptions& given, Output output) {
    const auto options = inspect_options(given);
    if (!options) {
        return output.error(options.error());
    }
    const auto found = find_data(given.path);
    if (!found) {
        return output.error(found.error());
    }
    auto file = read_dataset_file(found->path, *options);
    const auto prepared = file ? prepare_examples(*file, *options, 0) : Status(fail(file.error()));
    if (!prepared) {
        return output.error(prepared.error());
    }
    auto summary = inspect(file->train);
    summary.held_out = file->test ? file->test->size() : 0;
    if (is_manifest(found->path)) {
        summary.digest = file->digest;
    }
    output.object("dataset", to_json(summary));
    output.line(fmt::format("{}: {} examples of shape {} ({}), {}", given.path, summary.examples,
                            shape_text(summary.shape), summary.reader,
                            summary.regression    ? std::string("a number to predict")
                            : summary.classes > 0 ? fmt::format("{} classes", summary.classes)
                                                  : std::string("no labels (name the column with --label)")));
    for (const auto& note : summary.notes) {
        output.line(note);
    }
    if (summary.held_out > 0) {
        output.line(fmt::format("{} more are held out from training", summary.held_out));
    }
    output.line(fmt::format("values {:g} to {:g}, mean {:.4g}", summary.least, summary.most, summary.mean));
    constexpr std::size_t most_shown = 20;
    for (std::size_t i = 0; i < std::min(most_shown, summary.per_class.size()); ++i) {
        output.line(fmt::format("  class {:<4} {:>8}  {}", i, summary.per_class[i],
                                i < summary.class_names.size() ? summary.class_names[i] : std::string()));
    }
    if (summary.per_class.size() > most_shown) {
        output.line(fmt::format("  ... and {} more classes", summary.per_class.size() - most_shown));
    }
    output.line("sha256 " + summary.digest.hex());
    return exit_done;
}

int run_data_split(const SplitOptions& options, Output output) {
    std::string name;
    const auto written = split(options, name);
    if (!written) {
        return output.error(written.error());
    }
    for (const auto& part : *written) {
        output.object(Json::object()
                          .set("event", "part")
                          .set("path", part.path.string())
                          .set("examples", std::uint64_t{part.examples})
                          .set("sha256", part.digest.hex()));
        output.line(fmt::format("{}  {} examples", part.path.string(), part.examples));
    }
    output.line(fmt::format("next: give each node its part, as in\n  {} join TOKEN --state DIR --data {}={}",
                            shell_quoted(own_path().string()), name, shell_quoted(written->front().path.string())));
    return exit_done;
}

}  // namespace causeway::cli
