// A command's session with the coordinator: the operator's identity, one control connection, requests and replies.
//
// The identity lies in STATE/operator, where the coordinator's first start or `causeway join` with an operator's token
// wrote it, with the addresses to reach the coordinator at, tried in turn.
// Commands talk TLS to the daemon and never to its files. Every wait has a bound. Main thread only.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/json.h"
#include "wire/link.h"

namespace causeway::cli {

class OperatorSession {
public:
    /// errors   not_found: no identity there; disconnected, timed_out: the coordinator does not answer; refused: it
    ///          does not know this identity
    static Result<std::unique_ptr<OperatorSession>> connect(const std::filesystem::path& state);
    OperatorSession(std::unique_ptr<Link> link, std::shared_ptr<LinkEvents> control, std::shared_ptr<LinkEvents> bulk);

    /// One request, one reply. errors: the coordinator's own, disconnected, timed_out
    Result<Json> ask(const std::string& verb, const Json& body);
    /// A request with many replies: `each` gets every one; false ends it early. `idle` is called twice a second.
    Status follow(const std::string& verb, const Json& body, const std::function<bool(const Json&)>& each,
                  const std::function<bool()>& idle);
    /// Pulls a model by its digest into a file, verified. errors: not_found; io
    Status fetch(const std::string& model_sha256, std::uint64_t bytes, const std::filesystem::path& file);

private:
    static Result<std::unique_ptr<OperatorSession>> connect_to(const Address& address, const Credentials& credentials,
                                                               const std::filesystem::path& state);
    void renew(const std::filesystem::path& state, const Credentials& credentials);
    Status greet(const std::filesystem::path& state);
    Result<std::optional<Reply>> next_reply(std::uint64_t request, Duration bound);
    std::uint64_t send_request(const std::string& verb, const Json& body);

    std::unique_ptr<Link> link_;
    std::shared_ptr<LinkEvents> control_;
    std::shared_ptr<LinkEvents> bulk_;
    Address address_;
    ConnectionId connection_ = 0;
    std::uint64_t session_ = 0;
    std::uint64_t last_request_ = 0;
    std::vector<Reply> set_aside_;
    std::optional<Error> lost_;  // the connection has ended: for every request from then on
};

}  // namespace causeway::cli
