// The command line: names, options, help with an example each. CLI11, slow to compile, is here and in command_tree.cpp.
//
// A function per group adds its commands; the chosen one leaves a closure in `chosen`, which main runs. A line of help
// fits 100 columns, and every example runs as printed after those before it (tests/e2e/help_test.py holds both).
#include "cli/arguments.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

#include "cli/boundary.h"
#include "cli/command_tree.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/parser.h"
#include "cli/plan_commands.h"
#include "cli/stop_signal.h"
#include "cli/follow_options.h"
#include "common/log.h"
#include "common/scratch.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

void add_demo(Parser& parser) {
    auto options = std::make_shared<ShapedDemoOptions>();
    auto* app = command(parser, parser.app, "demo", "a whole federation on this machine: real processes, real data",
                        "causeway demo digits-gsfl --clients 8", options, run_shaped_demo);
    app->add_option("example", options->example, "an example's name or an experiment file")->capture_default_str();
    add_number(app, "--clients", options->clients, 1, 100, "client processes, all required");
    add_number(app, "--workers", options->workers, 1, 64, "coordinator threads; the model does not depend on it");
    app->add_option("--state", options->state, "a new folder for everything the demo writes; it stays")
        ->type_name("DIR");
    app->add_flag("--keep", options->keep, "keep model, logs and parts of the data (default: gone after a success)");
    app->add_option("--link", options->link, "shape the clients' links: \"uplink=2mbit,downlink=8mbit,delay=20ms\"")
        ->type_name("MIX");
    app->add_option("--slow", options->slow, "clients that compute as slowly: \"10x\", \"80% 1x; 20% 10x\"")
        ->type_name("MIX");
    add_data(app, options->data);
    add_models(app, options->models);
    add_set(app, options->set);
}

void add_daemons(Parser& parser) {
    auto coordinator = std::make_shared<CoordinatorOptions>();
    auto* app = command(parser, parser.app, "coordinator", "the daemon that manages rounds; runs until it is stopped",
                        "causeway coordinator --state ~/federation --data digits=parts/holdout.csv.gz", coordinator,
                        run_coordinator);
    app->add_option("--state", coordinator->state, "its state folder")->required()->type_name("DIR");
    app->add_option("--listen", coordinator->listen, "address and port")->capture_default_str()->type_name("ADDR");
    app->add_option("--advertise", coordinator->advertise, "address that tokens carry, instead of all global ones")
        ->type_name("HOST[:PORT]");
    app->add_option("--federation", coordinator->federation, "its name in certificates, fixed at the first start")
        ->capture_default_str();
    add_choice(app, "--ca", coordinator->ca, {"own", "external"}, "who signs certificates, fixed at the first start");
    add_number(app, "--parallel", coordinator->parallel, 1, 16, "experiments that run at one time");
    add_number(app, "--workers", coordinator->workers, 1, 64, "threads that decode and check updates");
    add_number(app, "--sessions", coordinator->sessions, 0, 4096,
               "nodes and operators at one time; 0: as many as fit");
    app->add_option("--http", coordinator->http, "serve /healthz and /metrics (Prometheus) here; loopback only")
        ->type_name("ADDR");
    add_data(app, coordinator->data);
    add_models(app, coordinator->models);

    auto join = std::make_shared<JoinOptions>();
    app = command(parser, parser.app, "join", "a node: enrols with a token at its first start, then trains",
                  "causeway join TOKEN --state ~/node --data digits=parts/part-1.csv.gz", join, run_join);
    app->add_option("token", join->token, "from `token new`; `-` reads it from stdin; later starts need none");
    app->add_option("--state", join->state, "the node's state folder")->required()->type_name("DIR");
    add_choice(app, "--device", join->device, {"auto", "cpu"}, "what it trains on");
    add_number(app, "--threads", join->threads, 1, 256, "threads of the trainer; bits may depend on it");
    app->add_option("--slow", join->slow, "compute as slowly as a weaker machine, for tests: \"10x\"")
        ->type_name("FACTOR");
    app->add_option("--memory", join->memory, "for models, at most: \"8GB\" (default: what the machine has left)")
        ->type_name("SIZE");
    app->add_option("--policy", join->policy, "what this node will do (default: policy.toml in its state folder)")
        ->type_name("FILE");
    app->add_option("--allow", join->allow, "permit what sends activations of the data away: split")
        ->check(CLI::IsMember({"split"}).description(""))
        ->type_name("WORD");
    app->add_option("--wait", join->wait, "how long the first start waits for an authority elsewhere")
        ->capture_default_str()
        ->type_name("DURATION");
    app->add_flag("--share-labels", join->share_labels, "permit telling the coordinator how often each label occurs");
    app->add_flag("--share-statistics", join->share_statistics,
                  "permit telling it sums of columns and squares (data.normalise)");
    app->add_option("--listen", join->listen, "a host's: where clients open their streams; port 0: any free one")
        ->capture_default_str()
        ->type_name("ADDR");
    app->add_option("--advertise", join->advertise, "a host's: address for clients, instead of all global ones")
        ->type_name("HOST[:PORT]");
    app->add_option("--reach", join->reach, "dial a host there (a forwarded port), not where it says (repeatable)")
        ->type_name("HOST=ADDR");
    add_data(app, join->data);
}

void add_file_command(Parser& parser, CLI::App& parent, const std::string& name, const std::string& about,
                      int (*run)(const FileOptions&, Output)) {
    auto options = std::make_shared<FileOptions>();
    const std::string state = name == "submit" ? " --state ~/federation" : "";
    auto* app = command(parser, parent, name, about,
                        "causeway experiment " + name + " digits-fedavg --set train.batch=64" + state, options, run);
    app->add_option("file", options->file, "an experiment file or an example's name")->required();
    add_set(app, options->set);
    if (name == "submit") {
        add_state(app, options->state);
        add_watch(app, options->watch, options->reconnect);
        add_number(app, "--priority", options->priority, 0, 1000, "its place in the queue: the highest starts first");
    }
}

void add_chosen_experiment(CLI::App* app, std::string& state, std::string& experiment) {
    add_state(app, state);
    app->add_option("experiment", experiment, "its number or name (default: the latest)")->type_name("ID|NAME");
}

CLI::App* add_run_command(Parser& parser, CLI::App& parent, const std::string& name, const std::string& about,
                          const std::shared_ptr<ExperimentOptions>& options,
                          int (*run)(const ExperimentOptions&, Output)) {
    auto* app =
        command(parser, parent, name, about, "causeway experiment " + name + " --state ~/federation", options, run);
    name == "list" ? add_state(app, options->state) : add_chosen_experiment(app, options->state, options->experiment);
    add_reconnect_where_followed(app, name, options->reconnect);
    return app;
}

/// What predict and evaluate share.
CLI::App* add_model_command(Parser& parser, CLI::App& parent, const std::string& name, const std::string& about,
                            const std::string& example, const std::shared_ptr<ModelOptions>& options,
                            int (*run)(const ModelOptions&, Output)) {
    auto* app = command(parser, parent, name, about, example, options, run);
    app->add_option("model", options->model, "a model that `experiment export` wrote")
        ->required()
        ->type_name("MODEL.safetensors");
    app->add_option("data", options->data, "a file or folder: CSV, IDX, NPY, or any of them gzipped")->required();
    app->add_option("--label", options->label, "label column: last, a name or an index; own: the format's own labels");
    app->add_option("--scale", options->scale, "the scale used in training, as \"0..16 -> 0..1\", or none");
    app->add_option("--experiment", options->experiment, "take label and scale from this experiment file or example")
        ->type_name("FILE");
    return app;
}

void add_model_commands(Parser& parser, CLI::App& parent) {
    auto predicted = std::make_shared<ModelOptions>();
    auto* app =
        add_model_command(parser, parent, "predict", "class and probabilities of each example of a file, as CSV",
                      "causeway experiment predict model.safetensors new.csv --scale \"0..16 -> 0..1\" --out out.csv",
                          predicted, run_experiment_predict);
    app->add_option("--out", predicted->out, "the CSV to write (default, and -: stdout)")->type_name("FILE");
    add_force(app, predicted->force);
    add_model_command(parser, parent, "evaluate", "loss, accuracy, F1 of a model on labelled data; AUC for two classes",
                      "causeway experiment evaluate model.safetensors holdout.csv.gz --experiment digits-fedavg",
                      std::make_shared<ModelOptions>(), run_experiment_evaluate);
}

/// What looks back at an experiment that has been.
void add_history_commands(Parser& parser, CLI::App& parent) {
    auto resumed = std::make_shared<ResumeOptions>();
    auto* app = command(parser, parent, "resume", "go on from the last commit of one that is over, as a new one",
                        "causeway experiment resume --rounds 25 --state ~/federation", resumed, run_experiment_resume);
    add_chosen_experiment(app, resumed->state, resumed->experiment);
    add_number(app, "--rounds", resumed->rounds, 0, 1000000, "rounds in all, 0: as its file says");
    add_set(app, resumed->set);
    add_watch(app, resumed->watch, resumed->reconnect);

    auto replayed = std::make_shared<ReplayOptions>();
    app = command(parser, parent, "replay", "repeat its decision log here: every round must come to the same bits",
                  "causeway experiment replay --data hospital-a:digits=parts/part-1.csv.gz --state ~/federation",
                  replayed, run_experiment_replay);
    add_chosen_experiment(app, replayed->state, replayed->experiment);
    app->add_option("--data", replayed->data, "a node's data; without NODE, what a demo divided (repeatable)")
        ->type_name("[NODE:]NAME=PATH");
    add_models(app, replayed->models);

    auto explained = std::make_shared<ExplainOptions>();
    app = command(parser, parent, "explain", "say why: slow rounds, who was left out or refused, how it ended",
                  "causeway experiment explain --round 2 --state ~/federation", explained, run_experiment_explain);
    add_chosen_experiment(app, explained->state, explained->experiment);
    add_number(app, "--round", explained->round, 0, 1000000, "this round alone, 0: the whole run");

    auto compared = std::make_shared<CompareOptions>();
    app = command(parser, parent, "compare", "two side by side: settings that differ, rounds, figures, bytes, time",
                  "causeway experiment compare 1 2 --state ~/federation", compared, run_experiment_compare);
    add_state(app, compared->state);
    app->add_option("first", compared->first, "its number or name")->required()->type_name("ID|NAME");
    app->add_option("second", compared->second, "the other's")->required()->type_name("ID|NAME");
}

void add_leakage(Parser& parser, CLI::App& parent) {
    auto leakage = std::make_shared<LeakageOptions>();
    auto* app = command(parser, parent, "leakage", "how much of the inputs each cut would let out, on this data",
                        "causeway experiment leakage digits-gsfl --noise 0.5", leakage, run_experiment_leakage);
    app->add_option("file", leakage->file, "an experiment file or an example's name")->required();
    app->add_option("--model", leakage->model, "a safetensors file (default: the initial model)")->type_name("FILE");
    add_number(app, "--examples", leakage->examples, 2, 2000, "at most, drawn by the seed");
    app->add_option("--noise", leakage->noise, "scale of noise on what is sent, to see what it hides")
        ->check(CLI::Range(0.0, 1000.0).description(""))
        ->type_name("SCALE");
    add_data(app, leakage->data);
    add_set(app, leakage->set);
}

void add_experiments(Parser& parser) {
    auto& parent = *group(parser.app, "experiment", "experiments: write, check, run, follow, fetch the model");
    auto init = std::make_shared<InitOptions>();
    auto* app = command(parser, parent, "init", "write a commented experiment file; asks at a terminal",
                        "causeway experiment init my.toml --dataset digits", init, run_experiment_init);
    app->add_option("file", init->file, "where to write it")->capture_default_str();
    app->add_option("--name", init->name, "the experiment's name");
    app->add_option("--dataset", init->dataset, "the dataset's name, as nodes declare it");
    app->add_option("--shape", init->shape, "shape of one example, as 8x8x1");
    app->add_option("--rounds", init->rounds, "how many rounds")->type_name("N");
    add_set(app, init->set);
    add_force(app, init->force);
    add_file_command(parser, parent, "validate", "check a file and report all of its mistakes",
                     run_experiment_validate);
    add_file_command(parser, parent, "show", "print it with presets expanded and where each value came from",
                     run_experiment_show);
    add_leakage(parser, parent);
    add_file_command(parser, parent, "submit", "hand it to the coordinator", run_experiment_submit);
    add_run_command(parser, parent, "list", "all experiments of the federation", std::make_shared<ExperimentOptions>(),
                    run_experiment_list);
    add_run_command(parser, parent, "status", "where one stands now, and what each member does",
                    std::make_shared<ExperimentOptions>(), run_experiment_status);
    add_run_command(parser, parent, "watch", "follow one live, from its first round to its end",
                    std::make_shared<ExperimentOptions>(), run_experiment_watch);
    add_run_command(parser, parent, "cancel", "stop one for good", std::make_shared<ExperimentOptions>(),
                    run_experiment_cancel);
    auto wait = std::make_shared<ExperimentOptions>();
    add_timeout(add_run_command(parser, parent, "wait", "return when it has ended; exit code 0 only if it succeeded",
                                wait, run_experiment_wait),
                wait->timeout);
    auto exported = std::make_shared<ExperimentOptions>();
    app = add_run_command(parser, parent, "export", "fetch a committed model as safetensors or NPZ", exported,
                          run_experiment_export);
    app->add_option("--out", exported->out, "the file to write, - is stdout (default: NAME.safetensors or NAME.npz)")
        ->type_name("FILE");
    add_force(app, exported->force);
    add_choice(app, "--format", exported->format, {"safetensors", "npz"},
               "with its architecture, or tensors alone for numpy");
    app->add_option("--round", exported->round, "the model of this round (default: the last)")
        ->type_name("N")
        ->each([exported](const std::string&) { exported->chosen_round = true; });
    app->add_flag("--best", exported->best, "the best model by evaluation.metric, instead of the last")
        ->excludes("--round");
    add_history_commands(parser, parent);
    add_model_commands(parser, parent);
    auto* fields = parent.add_subcommand("fields", "every field with its default and bounds, as Markdown");
    fields->callback([&parser] { parser.chosen = run_experiment_fields; });
    fields->footer("Example:\n  causeway experiment fields");
    add_json(parser, fields);
}

void add_data_commands(Parser& parser) {
    auto& parent = *group(parser.app, "data", "datasets on this machine");
    auto inspect = std::make_shared<InspectOptions>();
    auto* app = command(parser, parent, "inspect", "read a dataset and say what is in it",
                        "causeway data inspect parts/part-1.csv.gz --label last", inspect, run_data_inspect);
    app->add_option("path", inspect->path, "a file or folder (CSV, IDX, NPY, gzipped or not), or `digits`")->required();
    app->add_option("--label", inspect->label, "label column: last, a name or an index");
    app->add_option("--shape", inspect->shape, "shape of one example, as 8x8x1");
    app->add_option("--scale", inspect->scale, "linear map of the values, as \"0..16 -> 0..1\"");
    add_form_options(app, inspect->form);

    auto split = std::make_shared<SplitOptions>();
    app = command(parser, parent, "split", "write parts of a dataset as files that nodes can hold",
                  "causeway data split digits --parts 2 --holdout 20% --out parts", split, run_data_split);
    app->add_option("data", split->data, "a path, NAME=PATH, or `digits`")->required();
    add_number(app, "--parts", split->parts, 1, 100000, "how many");
    app->add_option("--holdout", split->holdout, "share kept for evaluation")->capture_default_str();
    app->add_option("--partition", split->partition,
                    "iid, \"dirichlet alpha=0.5\", \"shards labels=2\", \"quantity power=1\"")
        ->capture_default_str();
    app->add_option("--label", split->label, "label column: last, a name or an index (default: last)");
    add_form_options(app, split->form);
    app->add_option("--seed", split->seed, "of the draw")->capture_default_str()->type_name("N");
    app->add_option("--out", split->out, "the folder to write")->required()->type_name("DIR");
    add_force(app, split->force, "replace the parts that the folder holds already");
}

void add_tools(Parser& parser) {
    auto simulate = std::make_shared<SimulateOptions>();
    auto* app =
        command(parser, parser.app, "simulate", "run one on a virtual clock and network, to the real run's model",
                "causeway simulate digits-fedavg --clients 5", simulate, run_simulate);
    app->add_option("file", simulate->file, "an experiment file or an example's name")->required();
    add_number(app, "--clients", simulate->clients, 1, 100000, "virtual clients");
    app->add_option("--seed", simulate->seed, "of links, speeds and failures")->capture_default_str()->type_name("N");
    app->add_option("--faults", simulate->faults, "what fails: none, all, or kinds (docs/simulation.md)")
        ->capture_default_str()
        ->type_name("KIND,...");
    app->add_option("--transcript", simulate->transcript, "write who did what and when; - is stdout")
        ->type_name("FILE");
    app->add_option("--link,--links", simulate->links, "\"80% uplink=10mbit,delay=20ms; 20% uplink=2mbit,delay=80ms\"")
        ->type_name("MIX");
    app->add_option("--slow,--speeds", simulate->speeds, "times as long, or per example: \"80% 50us; 20% 10x\"")
        ->type_name("MIX");
    app->add_option("--coordinator-link", simulate->coordinator_link, "the line that all clients share")
        ->capture_default_str()
        ->type_name("LINK");
    app->add_flag("--no-training", simulate->no_training, "only times and bytes, by a model: for thousands of clients");
    app->add_option("--examples", simulate->examples, "of each client, with --no-training")
        ->capture_default_str()
        ->type_name("N");
    app->add_option("--out", simulate->out, "write the final model here; - is stdout")->type_name("FILE");
    add_force(app, simulate->force);
    add_data(app, simulate->data);
    add_models(app, simulate->models);
    add_set(app, simulate->set);

    auto bench = std::make_shared<BenchOptions>();
    app = command(parser, parser.app, "bench", "measure this machine: sums, kernels, commits, transfers, rounds",
                  "causeway bench sums", bench, run_bench);
    app->add_option("name", bench->name, "one benchmark (default: all)");
    app->add_option("--data", bench->data, "a dataset for those that need one")->type_name("PATH");
    app->add_option("--rows", bench->rows, "of `training`: only rows whose name has this text")->type_name("TEXT");
    app->add_option("--threads", bench->threads, "of `training`: how many (default: 1, then 2)")
        ->check(CLI::Range(1, 256));
}

void add_plan(Parser& parser) {
    auto plan = std::make_shared<PlanOptions>();
    auto* app = command(
        parser, parser.app, "plan", "what a round would take in each regime, at every cut and group count",
        "causeway plan digits-gsfl --clients 12 --link \"uplink=2mbit,downlink=8mbit\" --slow 10x", plan, run_plan);
    app->add_option("file", plan->file, "an experiment file or an example's name")->required();
    app->add_option("--profile", plan->profile, "clients with links and speeds (docs/planning.md)")->type_name("FILE");
    app->add_option("--state", plan->state, "plan for the nodes of this coordinator that hold the dataset")
        ->type_name("DIR");
    add_number(app, "--clients", plan->clients, 1, 10000, "without --profile and --state, how many");
    app->add_option("--examples", plan->examples, "of each client (default: as the demo divides the dataset)")
        ->type_name("N");
    app->add_option("--link", plan->link, "of the clients: \"uplink=2mbit,downlink=8mbit,delay=20ms\"")
        ->type_name("MIX");
    app->add_option("--slow", plan->slow, "times as long as this machine: \"10x\", \"80% 1x; 20% 10x\"")
        ->type_name("MIX");
    app->add_option("--step-seconds", plan->step_seconds, "of one batch here, all layers (default: measured)")
        ->check(CLI::Range(1e-9, 1e6).description(""))
        ->type_name("S");
    app->add_option("--host-memory", plan->host_memory, "for server segments, such as 8GB")->type_name("SIZE");
    app->add_option("--client-memory", plan->client_memory, "of each client, such as 256MB")->type_name("SIZE");
    app->add_option("--regime", plan->regime,
                    "choose among it only: federated, split, splitfed-v1, splitfed-v2, gsfl")
        ->check(CLI::IsMember({"federated", "split", "splitfed-v1", "splitfed-v2", "gsfl"}).description(""))
        ->type_name("WORD");
    app->add_flag("--apply", plan->apply, "write the choice into the file, which keeps its comments");
    add_data(app, plan->data);
    add_set(app, plan->set);
}

void add_service(Parser& parser) {
    auto doctor = std::make_shared<DoctorOptions>();
    auto* app =
        command(parser, parser.app, "doctor", "what is wrong with this machine or a state folder, and how to mend it",
                "causeway doctor --state ~/node", doctor, run_doctor);
    app->add_option("--state", doctor->state, "a coordinator's or a node's state folder (default: the machine only)")
        ->type_name("DIR");
    app->add_flag("--repair", doctor->repair, "mend a stopped coordinator's damaged store, and say what that costs");
    app->add_option("--listen", doctor->listen, "where a coordinator is to listen")
        ->capture_default_str()
        ->type_name("ADDR");
    add_choice(app, "--device", doctor->device, {"auto", "cpu"}, "what is to train here");

    auto backup = std::make_shared<BackupOptions>();
    app = command(parser, parser.app, "backup", "a whole copy of a coordinator's state folder, also while it runs",
                  "causeway backup ~/backup-monday --state ~/federation", backup, run_backup);
    app->add_option("out", backup->out, "the copy: a new folder")->required()->type_name("DIR");
    add_state(app, backup->state, "the coordinator's state folder");

    auto& completion = *group(parser.app, "completion", "completion for a shell, printed");
    for (const auto& [shell_name, make] : {std::pair{"bash", &bash_completion}, std::pair{"zsh", &zsh_completion}}) {
        const std::string shell = shell_name;
        auto* added = completion.add_subcommand(shell, std::string("the script for ") + shell);
        added->footer(std::string("Example:\n  causeway completion ") + shell + " > causeway." + shell);
        add_json(parser, added);
        added->callback([&parser, shell, make = make] {
            parser.chosen = [&parser, make, shell](Output output) {
                const auto script = make(tree_of(parser.app));
                output.line(script);
                output.object(Json::object().set("event", "completion").set("shell", shell).set("script", script));
                return static_cast<int>(exit_done);
            };
        });
    }

    auto manual = std::make_shared<ManualOptions>();
    app = command(parser, parser.app, "man", "write the man pages, one per command, into a folder",
                  "causeway man man1 && man man1/causeway.1", manual, run_man);
    app->add_option("folder", manual->folder, "where to write them")->required()->type_name("DIR");
    add_force(app, manual->force);
    app->callback([&parser, manual] {
        parser.chosen = [&parser, manual](Output output) {
            manual->pages = manual_pages(tree_of(parser.app));
            return run_man(*manual, output);
        };
    });
}

}  // namespace

namespace {

constexpr int ended_by_interrupt = 130;  // as a shell says of SIGINT

void add_all(Parser& parser) {
    parser.app.require_subcommand(1);
    parser.app.set_version_flag("--version", std::string("causeway ") + CAUSEWAY_VERSION);
    parser.app.add_flag("--log-json", parser.log_json, "log lines on stderr as JSON objects");
    parser.app.add_flag("--verbose", parser.verbose, "log more");
    parser.app.fallthrough();
    parser.app.footer("Start with:  causeway demo\nEvery command has --help with an example, and --json.");
    add_demo(parser);
    add_daemons(parser);
    add_federation_commands(parser);
    add_experiments(parser);
    add_data_commands(parser);
    add_tools(parser);
    add_plan(parser);
    add_service(parser);
}

/// What Ctrl-C says there is that the run goes on (follow.h).
bool follows_experiment(const CLI::App& app) {
    constexpr std::array following = {"submit", "watch", "wait", "resume"};
    return app.got_subcommand("experiment") && std::ranges::any_of(following, [&](const char* name) {
               return app.get_subcommand("experiment")->got_subcommand(name);
           });
}

int parse_and_run(int argc, char** argv, Output output) {
    Parser parser;
    add_all(parser);
    try {
        parser.app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        std::ostringstream text;
        const int code = parser.app.exit(asked, text, text);
        Output::text(text.str());
        return code;
    } catch (const CLI::ParseError& wrong) {
        return output.error({ErrorKind::invalid, "usage",
                             usage_message(parser.app, std::span(argv + 1, argv + argc), wrong.what())});
    }
    const bool daemon = parser.app.got_subcommand("coordinator") || parser.app.got_subcommand("join");
    on_lost_output(daemon ? LostOutput::is_ignored : LostOutput::ends_command);
    // A daemon's log is its picture; other commands have words of their own, and only warnings add to them.
    const auto least = parser.app.got_subcommand("coordinator") ? LogLevel::info : LogLevel::warn;
    start_log(parser.verbose ? LogLevel::debug : least, parser.log_json ? LogFormat::json : LogFormat::human);
    std::optional<StopSignal> signal;  // daemons and commands that follow an experiment have their own
    if (!daemon && !follows_experiment(parser.app)) {
        signal.emplace([] {
            remove_all_scratch();
            std::_Exit(ended_by_interrupt);
        });
    }
    return parser.chosen(parser.output);
}

}  // namespace

int run(int argc, char** argv) {
    Output output;
    output.json = std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
    return guarded(output, [&] {
        const auto prepared = prepare_process();
        return prepared ? parse_and_run(argc, argv, output) : output.error(prepared.error());
    });
}

}  // namespace causeway::cli
