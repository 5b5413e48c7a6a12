// The node's certificate over months: asks for the successor when two thirds of its life are over, over the control
// connection, and puts it into force without ending session or task.
//
// The next key is made here and never leaves. What is asked twice is asked with the same key, so an answer lost on the
// way costs nothing. Writing is done on the loop: three flushes in sixty days.
// Thread: loop.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "common/time.h"
#include "wire/identity.h"
#include "wire/message.h"

namespace causeway::node {

class Renewal {
public:
    /// folder: the identity's, whose state folder's lock the caller holds
    Renewal(std::filesystem::path folder, Credentials present);

    /// The request to send now, if the certificate is due and nothing was asked in a while. Call it only while online.
    std::optional<Request> ask(Instant now, std::int64_t unix_s);
    /// The new credentials, when this was the answer to the request and they are in force on disk.
    std::optional<Credentials> hear(const Reply& reply, std::int64_t unix_s);
    /// The connection is gone, and an answer with it: the next one asks again at once.
    void forget() { ask_at_ = Instant{}; }
    /// A line for the person at the node, once for each thing there is to say.
    [[nodiscard]] std::string take_words() { return std::exchange(words_, {}); }

private:
    std::optional<Credentials> take(const Reply& reply, std::int64_t unix_s);
    void say(const std::string& line);

    std::filesystem::path folder_;
    Credentials present_;
    std::int64_t due_s_ = 0;
    std::uint64_t last_request_ = 0;
    Instant ask_at_{};
    std::string words_;
    std::string last_said_;
};

}  // namespace causeway::node
