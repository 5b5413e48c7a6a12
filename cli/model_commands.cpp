// `experiment predict` and `experiment evaluate`: a model file and a data file of this machine, no federation.
//
// The file carries the architecture, so nothing but the data's reading has to be told: label and scale by options, or
// as an experiment file has them. Main thread, which is then the trainer's.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/model_file.h"
#include "configs/batches.h"
#include "configs/dataset_file.h"
#include "configs/evaluate.h"
#include "configs/statistics.h"
#include "configs/workload.h"
#include "model/metrics.h"

namespace causeway::cli {
namespace {

/// A model with the examples to try it on.
struct ModelSubject {
    ModelFile file;
    Dataset dataset;
};

/// What the command line says of reading, judged before any file is opened.
struct Reading {
    Experiment experiment;  // the one that is named, or none's
    std::optional<Scale> scale;
};

Result<Reading> judge_options(const ModelOptions& given) {
    Reading reading;
    if (!given.experiment.empty()) {
        TRY_ASSIGN(reading.experiment, load_experiment(given.experiment, {}));
    }
    if (!given.scale.empty() && given.scale != "none") {
        TRY_ASSIGN(reading.scale, parse_scale(given.scale));
    }
    return reading;
}

/// The experiment's way of reading, where one is named, below what the options say. Numbers of a run that the model's
/// file has are the ones that it was trained with.
Result<DataOptions> reading_of(const ModelOptions& given, Reading reading, const ModelFile& model) {
    if (needs_statistics(reading.experiment) && model.normalise.empty()) {
        return fail(ErrorKind::invalid, "normalisation_unknown",
                    fmt::format("{}: the experiment's run has normalised its examples, and this file does not say by "
                                "which numbers; fetch it with `causeway experiment export`",
                                given.model));
    }
    if (!model.normalise.empty()) {
        set_statistics(reading.experiment, model.normalise);
    }
    auto options = data_options_of(reading.experiment);
    if (!model.model.chain.loss().counts_correct()) {
        options.target = Target::number;
    }
    options.shape.clear();  // the model's own decides
    if (!given.label.empty()) {
        options.label = given.label == "own" ? "" : given.label;
    }
    if (!given.scale.empty()) {
        options.scale = reading.scale;
    }
    return options;
}

Result<ModelSubject> load_subject(const ModelOptions& given) {
    TRY_ASSIGN(auto reading, judge_options(given));
    TRY_ASSIGN(auto file, read_model_file(given.model));
    TRY_ASSIGN(const auto options, reading_of(given, std::move(reading), file));
    TRY_ASSIGN(auto read, read_dataset_file(given.data, options));
    // In the model's shape first: what is done by channel must find them.
    TRY(fit_to_input(read.train, file.model.chain));
    if (read.test) {
        TRY(fit_to_input(*read.test, file.model.chain));
    }
    TRY(prepare_examples(read, options, 0));
    auto dataset = read.test ? *std::move(read.test) : std::move(read.train);
    return ModelSubject{std::move(file), std::move(dataset)};
}

Status run_model(const ModelSubject& subject, const ScoresSink& sink) {
    TRY_ASSIGN(auto device, Device::open("auto"));
    Trainer trainer(std::move(device));
    EvaluationBatches batches(subject.dataset);
    return trainer.predict(subject.file.model.chain, subject.file.model.state, batches, sink);
}

// ---- predict

/// A name that a spreadsheet would take apart stands in quotes.
std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    }
    return quoted + '"';
}

/// `p2`, or `p_home` where the data's manifest names its classes. A model of numbers has `value`, or `value0` and on;
/// one of yes-or-no labels `p` likewise.
std::string csv_header(const ModelSubject& subject) {
    const auto& names = subject.dataset.class_names;
    const auto& chain = subject.file.model.chain;
    if (chain.loss().numeric()) {
        const std::string what = chain.loss().counts_correct() ? "p" : "value";
        std::string line = "row";
        for (std::int64_t i = 0; i < chain.classes(); ++i) {
            line += "," + what + (chain.classes() == 1 ? "" : std::to_string(i));
        }
        return line;
    }
    std::string line = "row,class";
    for (std::size_t i = 0; i < static_cast<std::size_t>(subject.file.model.chain.classes()); ++i) {
        line += "," + csv_cell((names.empty() ? "p" : "p_") + class_text(names, i));
    }
    return line;
}

struct Prediction {
    std::uint64_t row = 0;  // from 1
    std::optional<std::uint32_t> chosen;  // of a model of numbers none
    std::vector<float> probabilities;     // or its numbers
};

/// What an output of a model of numbers stands for: itself, or the probability of a yes.
float number_of_option(float score, const LossSpec& loss) {
    return loss.counts_correct() ? static_cast<float>(1 / (1 + std::exp(-static_cast<double>(score)))) : score;
}

/// Probabilities as their shortest text that reads back to the same bits.
std::string csv_line(const Prediction& prediction, const std::vector<std::string>& names) {
    const auto chosen = prediction.chosen ? csv_cell(class_text(names, *prediction.chosen)) + "," : std::string();
    return fmt::format("{},{}{}", prediction.row, chosen, fmt::join(prediction.probabilities, ","));
}

Json prediction_event(const Prediction& prediction, const std::vector<std::string>& names) {
    auto probabilities = Json::array();
    for (const float value : prediction.probabilities) {
        probabilities.push(static_cast<double>(value));
    }
    auto event = Json::object().set("event", "prediction").set("row", prediction.row);
    if (!prediction.chosen) {
        return event.set("values", std::move(probabilities));
    }
    event.set("class", *prediction.chosen).set("probabilities", std::move(probabilities));
    return names.empty() ? event : event.set("class_name", class_text(names, *prediction.chosen));
}

Status each_prediction(const ModelSubject& subject, const std::function<void(const Prediction&)>& each) {
    const auto classes = static_cast<std::size_t>(subject.file.model.chain.classes());
    const auto& loss = subject.file.model.chain.loss();
    Prediction prediction{.chosen = {}, .probabilities = std::vector<float>(classes)};
    return run_model(subject, [&](const BatchPlace& place, std::span<const float> scores, auto) -> Status {
        for (std::uint64_t i = 0; i < place.rows; ++i) {
            const auto of_row = scores.subspan(i * classes, classes);
            prediction.row = place.first + i + 1;
            if (loss.numeric()) {
                std::ranges::transform(of_row, prediction.probabilities.begin(),
                                       [&](float score) { return number_of_option(score, loss); });
            } else {
                prediction.chosen = predicted_class(of_row);
                class_probabilities(of_row, prediction.probabilities);
            }
            each(prediction);
        }
        return {};
    });
}

/// Without --out the CSV is the output itself, as it comes.
Status predict_to_stdout(const ModelSubject& subject, Output output) {
    const auto& names = subject.dataset.class_names;
    output.line(csv_header(subject));
    return each_prediction(subject, [&](const Prediction& prediction) {
        if (output.json) {
            output.object(prediction_event(prediction, names));
        } else {
            output.line(csv_line(prediction, names));
        }
    });
}

Status predict_to_file(const ModelOptions& options, const ModelSubject& subject, Output output) {
    const auto& file = options.out;
    const auto& names = subject.dataset.class_names;
    auto text = csv_header(subject) + "\n";
    TRY(each_prediction(subject, [&](const Prediction& prediction) { text += csv_line(prediction, names) + "\n"; }));
    TRY(write_output(file, as_bytes(text), output_mode({options.model, options.data}), existing_of(options.force)));
    output.line(fmt::format("{}: {} predictions", file, subject.dataset.size()));
    output.object(Json::object()
                      .set("event", "predicted")
                      .set("file", file)
                      .set("rows", std::uint64_t{subject.dataset.size()})
                      .set("model_sha256", subject.file.digest.hex()));
    return {};
}

// ---- evaluate

Json class_object(std::size_t label, const std::vector<std::string>& names, const ClassCounts& counts) {
    return Json::object()
        .set("class", std::uint64_t{label})
        .set("name", class_text(names, label))
        .set("examples", counts.examples)
        .set("predicted", counts.predicted)
        .set("correct", counts.correct)
        .set("precision", counts.precision())
        .set("recall", counts.recall())
        .set("f1", counts.f1());
}

Json evaluation_event(const ModelOptions& options, const ModelSubject& subject, const ClassMetrics& metrics) {
    auto classes = Json::array();
    for (std::size_t i = 0; i < metrics.classes.size(); ++i) {
        classes.push(class_object(i, subject.dataset.class_names, metrics.classes[i]));
    }
    return Json::object()
        .set("event", "evaluated")
        .set("model", options.model)
        .set("model_sha256", subject.file.digest.hex())
        .set("data", options.data)
        .set("examples", metrics.examples)
        .set("loss", metrics.loss)
        .set("accuracy", metrics.accuracy)
        .set("macro_f1", metrics.macro_f1)
        .set("auc", metrics.auc ? Json(*metrics.auc) : Json())
        .set("classes", std::move(classes));
}

void print_metrics(const ModelOptions& options, const ModelSubject& subject, const ClassMetrics& metrics,
                   Output output) {
    output.line(fmt::format("{} on {}: {} examples, {} classes", options.model, options.data, metrics.examples,
                            metrics.classes.size()));
    output.line(fmt::format("loss {:.4f}  accuracy {:.2f} %  macro-F1 {:.4f}{}", metrics.loss, 100 * metrics.accuracy,
                            metrics.macro_f1, metrics.auc ? fmt::format("  AUC {:.4f}", *metrics.auc) : ""));
    constexpr std::size_t most_shown = 100;
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < std::min(most_shown, metrics.classes.size()); ++i) {
        const auto& counts = metrics.classes[i];
        rows.push_back({class_text(subject.dataset.class_names, i), std::to_string(counts.examples),
                        std::to_string(counts.predicted), fmt::format("{:.4f}", counts.precision()),
                        fmt::format("{:.4f}", counts.recall()), fmt::format("{:.4f}", counts.f1())});
    }
    output.line(table({"class", "examples", "predicted", "precision", "recall", "F1"}, rows));
    if (metrics.classes.size() > most_shown) {
        output.line(fmt::format("... and {} more classes; --json has all", metrics.classes.size() - most_shown));
    }
}

/// A model of numbers: the figures that a run shows of it.
Status evaluate_numbers(const ModelOptions& options, const ModelSubject& subject, Output output) {
    TRY_ASSIGN(auto device, Device::open("auto"));
    Trainer trainer(std::move(device));
    TRY_ASSIGN(const auto figures,
               evaluate_dataset(trainer, subject.file.model.chain, subject.file.model.state, subject.dataset));
    auto event = Json::object()
                     .set("event", "evaluated")
                     .set("model", options.model)
                     .set("model_sha256", subject.file.digest.hex())
                     .set("data", options.data)
                     .set("examples", figures.examples);
    std::string line;
    for (const auto& metric : all_metrics()) {
        if (const auto found = figures.values.find(metric.name); found != figures.values.end()) {
            event.set(std::string(metric.name), found->second);
            line += fmt::format("{}{} {:.6g}", line.empty() ? "" : "  ", metric.name, found->second);
        }
    }
    output.object(event);
    output.line(fmt::format("{} on {}: {} examples\n{}", options.model, options.data, figures.examples, line));
    return {};
}

Status evaluate(const ModelOptions& options, Output output) {
    TRY_ASSIGN(const auto subject, load_subject(options));
    if (subject.file.model.chain.loss().numeric()) {
        return evaluate_numbers(options, subject, output);
    }
    if (!subject.dataset.labelled()) {
        return fail(ErrorKind::invalid, "no_labels",
                    fmt::format("{}: no labels to compare with; name their column with --label", options.data));
    }
    TRY(check_dataset_fits(subject.dataset, subject.file.model.chain));
    MetricsSum sum(static_cast<std::size_t>(subject.file.model.chain.classes()));
    TRY(run_model(subject, [&](const BatchPlace&, std::span<const float> scores, auto labels) -> Status {
        sum.add(scores, labels);
        return {};
    }));
    const auto metrics = sum.finish();
    output.object(evaluation_event(options, subject, metrics));
    print_metrics(options, subject, metrics, output);
    return {};
}

Status predict(const ModelOptions& options, Output output) {
    const bool to_stdout = options.out.empty() || is_standard_output(options.out);
    if (!to_stdout) {
        TRY(check_output(options.out, existing_of(options.force)));
    }
    TRY_ASSIGN(const auto subject, load_subject(options));
    return to_stdout ? predict_to_stdout(subject, output) : predict_to_file(options, subject, output);
}

int finish_evaluation(const Status& status, Output output) {
    return status ? exit_done : output.error(status.error());
}

}  // namespace

int run_experiment_predict(const ModelOptions& options, Output output) {
    return finish_evaluation(predict(options, output), output);
}
int run_experiment_evaluate(const ModelOptions& options, Output output) {
    return finish_evaluation(evaluate(options, output), output);
}

}  // namespace causeway::cli
