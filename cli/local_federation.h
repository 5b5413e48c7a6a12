// A federation on this machine: a coordinator and clients as processes of this binary, each client with its own
// certificate and its own part of the data. The demo shows one to a person, `bench rounds` times one.
//
// Everything lies in one folder; every process ends with this one. Main thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/experiment_file.h"
#include "cli/operator_session.h"
#include "cli/process.h"
#include "cli/shaped_links.h"
#include "data/write.h"

namespace causeway::cli {

struct LocalOptions {
    Experiment experiment;
    std::filesystem::path dataset;    // divided as the experiment says
    std::filesystem::path folder;     // new, or empty
    std::vector<std::string> models;  // NAME=PATH, for the coordinator
    std::uint32_t clients = 5;
    std::uint32_t hosts = 1;                         // of an experiment whose model is cut; others need none
    std::uint32_t workers = 1;                       // of the coordinator
    std::vector<simulation::ShapedLink> links;       // of the clients; empty: the machine's own
    std::vector<double> slow;                        // how many times as long each client computes; empty: once
    std::function<void(const std::string&)> status;  // what is being waited for
    std::function<void(const Json&)> working;        // how a long round goes: the status, or unset
};

class LocalFederation {
public:
    /// Divides the data, starts the processes, and returns when every client has joined.
    ///
    /// errors   those of the dataset; io: a process did not start, with the end of its log; timed_out
    static Result<std::unique_ptr<LocalFederation>> start(LocalOptions options);

    explicit LocalFederation(LocalOptions options) : options_(std::move(options)) {}

    /// Submits the experiment and follows it to its end: the `done` event. `each` gets every event.
    ///
    /// errors   io: a client has ended by itself, with the end of its log
    Result<Json> run(const std::function<void(const Json&)>& each);
    /// The same of what was submitted last, from a round on: after a lost connection.
    Result<Json> follow(std::uint32_t from, const std::function<void(const Json&)>& each);
    /// Kills the coordinator and starts it again on its state and its port; returns when it answers.
    Status restart_coordinator();
    /// Nothing more comes through that client's line, which must be a shaped one; from 0.
    void silence(std::size_t client) { shaped_->silence(client); }
    /// Asks every process to end, and waits for them.
    void stop();

    [[nodiscard]] const std::filesystem::path& folder() const { return options_.folder; }
    /// The coordinator's, then the hosts', then the clients'.
    [[nodiscard]] std::vector<Process>& processes() { return processes_; }
    /// A client's part of the data, from 0.
    [[nodiscard]] const std::filesystem::path& part(std::size_t client) const { return parts_[client].path; }

private:
    Status divide_data();
    Result<Process> start_coordinator(const std::string& listen);
    Status connect();
    Status shape_links();
    Status start_hosts();
    Status start_clients();
    [[nodiscard]] std::vector<std::string> ways_to_hosts(std::size_t client) const;
    /// Over that client's line, where there are shaped ones.
    Status start_node(const std::string& name, const std::string& role, const std::vector<std::string>& more,
                      std::optional<std::uint32_t> line);
    [[nodiscard]] Result<std::string> token_for(std::optional<std::uint32_t> line, const std::string& given) const;
    Status wait_for(const std::string& role, std::uint32_t count);
    Status all_running();
    [[nodiscard]] std::uint32_t hosts() const;
    [[nodiscard]] std::string name_of(std::size_t process) const;
    [[nodiscard]] std::string data_argument(const WrittenPart& part) const;

    LocalOptions options_;
    std::vector<WrittenPart> parts_;       // clients' in order, the held-out one last if there is one
    std::unique_ptr<ShapedLinks> shaped_;  // for each client a route to the coordinator and each host; outlives them
    std::vector<Process> processes_;       // the coordinator first
    std::unique_ptr<OperatorSession> session_;
    Json submitted_;  // the reply
};

}  // namespace causeway::cli
