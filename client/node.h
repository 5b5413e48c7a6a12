// The node: the session machine of session.h with its link, transfers, trainer and state folder around it.
//
// One loop thread owns the machine; a link thread owns the connection, a transfer thread moves models and serves
// updates, a files thread owns the state folder and the cache, one trainer thread owns the device. They exchange owned
// values through the loop's queue. A Node is the loop: run() is called on its thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/effects.h"
#include "client/node_limits.h"
#include "client/policy.h"
#include "common/file.h"
#include "wire/address.h"
#include "wire/token.h"

namespace causeway::node {

struct NodeOptions {
    std::filesystem::path state;
    std::map<std::string, std::filesystem::path> datasets;  // by name
    std::string device = "auto";
    std::int32_t threads = 1;                     // of the trainer
    double slow = 1;                              // how many times as long computing is made to take
    std::uint64_t memory = 0;                     // bytes for models, 0: what the machine has
    std::function<void(const std::string&)> say;  // a line for the person at the node
    Policy policy;                                // what it will do, and what not
    Address listen{"*", 0};                       // of a host: where clients open their streams; port 0: any free one
    std::vector<std::string> advertise;           // of a host, in place of all its global addresses
    std::map<std::string, std::string> reach;     // hosts that are dialled there, whatever the roster says of them
    std::shared_ptr<NodeLimits> limits = std::make_shared<NodeLimits>();
    std::function<void(Instant)> alive;           // on each turn of the loop, at least once a second
    std::function<std::int64_t()> unix_now = wall_clock_unix_s;  // certificates
    std::function<LocalTime()> local_now = [] { return local_time(wall_clock_unix_s()); };
};

/// Enrols with a token, or opens what an earlier enrolment left. The folder is locked while the result lives.
///
/// An operator's token makes the layout that commands look for (STATE/operator, as in a coordinator's folder); there is
/// nothing to run then.
struct Enrolment {
    FolderLock lock;
    std::string name;
    std::string federation;
    std::vector<Address> coordinators;  // tried in turn
    Role role = Role::client;

    /// Where the authority is elsewhere, the request waits there to be signed: it is asked for again every few seconds
    /// for as long as `wait`; a later start with the same token goes on from there.
    ///
    /// errors   refused `state_in_use`, or the coordinator's refusal; invalid: the token; not_found `not_enrolled`: no
    ///          token, and none was used here; disconnected: no address of the token answers; timed_out
    ///          `awaiting_signature`
    static Result<Enrolment> open(const std::filesystem::path& state, const std::string& token,
                                  const std::function<void(std::string_view)>& say, Duration wait = Duration::zero());
};

class Node {
public:
    /// Reads and declares the datasets, opens the device and the state folder.
    ///
    /// errors   those of the datasets; unsupported: the device; corrupt: the state folder
    static Result<std::unique_ptr<Node>> start(Enrolment enrolment, NodeOptions options);

    struct Parts;
    explicit Node(std::unique_ptr<Parts> parts);
    ~Node();
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    /// Serves until stop(), connecting again whenever the coordinator is away. errors: refused: it will not have us
    Status run();
    /// threads  thread-safe
    void stop();

private:
    std::unique_ptr<Parts> parts_;
};

}  // namespace causeway::node
