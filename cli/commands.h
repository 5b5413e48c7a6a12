// Every command's options and entry. arguments.cpp fills the options from the command line (the one file that knows
// CLI11); one file per command does the work and returns the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/manual.h"
#include "cli/output.h"
#include "common/time.h"

namespace causeway::cli {

struct DemoOptions {
    std::string example = "digits-gsfl";  // an example's name or a file
    std::uint32_t clients = 5;
    std::vector<std::string> data;    // NAME=PATH
    std::vector<std::string> models;  // NAME=PATH
    std::vector<std::string> set;
    std::string state;  // empty: a new folder under the temporary folder, which goes when the demo has succeeded
    bool keep = false;  // unless this says that it stays
    std::uint32_t workers = 1;  // of the coordinator
};
int run_demo(const DemoOptions& options, Output output);

struct CoordinatorOptions {
    std::string state;
    std::string listen = "*:7400";  // all addresses, IPv6 and IPv4
    std::vector<std::string> advertise;
    std::string federation = "causeway";
    std::string ca = "own";  // or external
    std::vector<std::string> data;
    std::vector<std::string> models;
    std::uint32_t parallel = 1;
    std::uint32_t workers = 2;
    std::uint32_t sessions = 0;  // 0: as many as this machine has room for
    std::string http;  // empty: none
};
int run_coordinator(const CoordinatorOptions& options, Output output);

struct TokenOptions {
    std::string state;
    std::string name;
    std::string role = "client";
    std::string expires = "24h";
};
int run_token_new(const TokenOptions& options, Output output);

struct TokenListOptions {
    std::string state;
};
int run_token_list(const TokenListOptions& options, Output output);

struct TokenRevokeOptions {
    std::string state;
    std::string name;
};
int run_token_revoke(const TokenRevokeOptions& options, Output output);

struct CaOptions {
    std::string state;
    std::string out;                 // requests: the folder to write them to; empty: list them
    bool force = false;
    std::vector<std::string> files;  // import: PEM files
};
int run_ca_requests(const CaOptions& options, Output output);
int run_ca_import(const CaOptions& options, Output output);

struct JoinOptions {
    std::string token;  // empty: enrolled before; "-": from stdin
    std::string state;
    std::vector<std::string> data;
    std::string device = "auto";
    std::uint32_t threads = 1;
    std::string slow;                // "10x"; empty: as fast as the machine is
    std::string memory;              // "8GB" for models; empty: what the machine has
    std::string policy;              // empty: STATE/policy.toml, where there is one
    std::vector<std::string> allow;  // "split"
    std::string wait = "10m";        // for an authority elsewhere, at the first start
    bool share_labels = false;
    bool share_statistics = false;
    std::string listen = "*:0";           // of a host
    std::vector<std::string> advertise;
    std::vector<std::string> reach;  // NODE=ADDR
};
int run_join(const JoinOptions& options, Output output);

struct NodeListOptions {
    std::string state;
};
int run_node_list(const NodeListOptions& options, Output output);

struct RevokeOptions {
    std::string state;
    std::string name;
};
int run_node_revoke(const RevokeOptions& options, Output output);

struct NodeLogOptions {
    std::string state;
    std::string name;  // empty: the node whose folder `state` is
    std::uint32_t lines = 50;
    bool follow = false;
};
int run_node_log(const NodeLogOptions& options, Output output);

struct AuditOptions {
    std::string state;
    std::uint64_t last = 0;  // show: only so many of the newest lines, 0: all
    std::string head;        // verify: a hash noted earlier, which the log must still hold
    std::string against;     // verify: a node's state folder, with the heads that the node has seen
};
int run_audit_show(const AuditOptions& options, Output output);
int run_audit_verify(const AuditOptions& options, Output output);

struct InitOptions {
    std::string file = "experiment.toml";
    std::string name;  // empty, and so below: asked at a terminal, else the template's
    std::string dataset;
    std::string shape;  // "8x8x1"
    std::uint32_t rounds = 0;
    std::vector<std::string> set;
    bool force = false;
};
int run_experiment_init(const InitOptions& options, Output output);

/// How long a command that follows an experiment waits for a coordinator that does not answer.
constexpr const char* default_reconnect = "10m";

struct FileOptions {
    std::string file;  // a path or an example's name
    std::vector<std::string> set;
    std::string state;  // submit only
    bool watch = false;
    std::string reconnect = default_reconnect;
    std::uint32_t priority = 0;  // submit: 0 is what the file says
};
int run_experiment_validate(const FileOptions& options, Output output);
int run_experiment_show(const FileOptions& options, Output output);
int run_experiment_submit(const FileOptions& options, Output output);
int run_experiment_fields(Output output);

struct ExperimentOptions {
    std::string state;
    std::string experiment;              // number or name; empty: the latest
    std::string reconnect = default_reconnect;  // watch, wait
    std::string timeout;                 // wait: empty is for ever, said so
    std::string out;                     // export
    bool force = false;
    std::string format = "safetensors";  // export: or npz
    std::uint32_t round = 0;
    bool chosen_round = false;
    bool best = false;  // export: instead of a round
};
int run_experiment_list(const ExperimentOptions& options, Output output);
int run_experiment_status(const ExperimentOptions& options, Output output);
int run_experiment_watch(const ExperimentOptions& options, Output output);
int run_experiment_wait(const ExperimentOptions& options, Output output);
int run_experiment_cancel(const ExperimentOptions& options, Output output);
int run_experiment_export(const ExperimentOptions& options, Output output);

struct ResumeOptions {
    std::string state;
    std::string experiment;    // number or name; empty: the latest
    std::uint32_t rounds = 0;  // in all, 0: as its file says
    std::vector<std::string> set;
    bool watch = false;
    std::string reconnect = default_reconnect;
};
int run_experiment_resume(const ResumeOptions& options, Output output);

struct ReplayOptions {
    std::string state;
    std::string experiment;           // number or name; empty: the latest
    std::vector<std::string> data;    // NODE:NAME=PATH, or NAME=PATH for what a demo divided
    std::vector<std::string> models;  // NAME=PATH
};
int run_experiment_replay(const ReplayOptions& options, Output output);

struct ExplainOptions {
    std::string state;
    std::string experiment;   // number or name; empty: the latest
    std::uint32_t round = 0;  // 0: the whole run
};
int run_experiment_explain(const ExplainOptions& options, Output output);

struct CompareOptions {
    std::string state;
    std::string first;  // numbers or names
    std::string second;
};
int run_experiment_compare(const CompareOptions& options, Output output);

struct ModelOptions {
    std::string model;       // a safetensors file
    std::string data;        // a dataset's file or folder
    std::string label;       // empty: as the experiment has it, or the format's own
    std::string scale;       // the same
    std::string experiment;  // a path or an example's name, whose label and scale count; empty: none
    std::string out;         // predict: empty is stdout
    bool force = false;
};
int run_experiment_predict(const ModelOptions& options, Output output);
int run_experiment_evaluate(const ModelOptions& options, Output output);

/// How a table is written, in the words of data/table_form.h.
struct FormOptions {
    std::string header = "look";
    std::string separator = "look";
    std::string encoding = "look";
    std::string decimal = "look";
    std::string quote = "look";
};

struct InspectOptions {
    std::string path;
    std::string label;
    std::string shape;
    std::string scale;
    FormOptions form;
};
int run_data_inspect(const InspectOptions& options, Output output);

struct SplitOptions {
    std::string data;  // a path, or the name of a dataset that comes with Causeway
    std::uint32_t parts = 2;
    std::string holdout = "0%";
    std::string partition = "iid";
    std::string label;
    std::uint64_t seed = 1;
    std::string out;
    FormOptions form;
    bool force = false;
};
int run_data_split(const SplitOptions& options, Output output);

struct SimulateOptions {
    std::string file;
    std::vector<std::string> set;
    std::vector<std::string> data;
    std::vector<std::string> models;
    std::uint32_t clients = 5;
    std::uint64_t seed = 0;          // of the network and of failures, not of the training
    std::string faults = "none";     // names joined by commas, or all
    std::string transcript;          // a file, "-" for stdout, empty: none
    std::string links;               // a mix; empty: delays of 1 to 20 ms, 100 Mbit/s
    std::string speeds;              // a mix of times per example; empty: 20 us
    std::string coordinator_link = "uplink=1gbit,downlink=1gbit";
    bool no_training = false;
    std::uint64_t examples = 600;  // of each client, without training
    std::string out;
    bool force = false;
};
int run_simulate(const SimulateOptions& options, Output output);

struct BackupOptions {
    std::string state;
    std::string out;
};
int run_backup(const BackupOptions& options, Output output);

struct DoctorOptions {
    std::string state;  // empty: the machine only
    std::string listen = "[::]:7400";
    std::string device = "auto";
    bool repair = false;  // instead of looking
};
int run_doctor(const DoctorOptions& options, Output output);
/// doctor_repair.cpp
int run_repair(const std::string& state, Output output);

struct ManualOptions {
    std::string folder;
    bool force = false;
    std::vector<ManualPage> pages = {};  // made by arguments.cpp, which knows the commands
};
int run_man(const ManualOptions& options, Output output);

struct BenchOptions {
    std::string name;  // empty: all
    std::string data;
    std::string rows;           // only rows whose name has this text, where a bench can choose; empty: all
    std::int32_t threads = 0;  // 0: what the bench tries by itself
};
int run_bench(const BenchOptions& options, Output output);

}  // namespace causeway::cli
