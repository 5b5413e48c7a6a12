// Which nodes are there: one live session per node, what each declares, and what any node ever declared.
//
// The link thread has already settled who may take over a session (identity in use); here the newest session of a node
// is the node's, and words of an older one are not heard. Operators may have several: each command is a session of
// its own. Thread: loop. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/listening_clock.h"
#include "coordinator/effects.h"

namespace causeway {

/// A node with a session.
struct Member {
    std::string node;
    std::string role;
    SessionId session = 0;
    bool silent = false;
    std::vector<DatasetDeclaration> datasets;
    std::string software;
    std::string compute_signature;
    Digest fingerprint{};                   // of its certificate
    std::vector<std::string> addresses{};   // where other nodes reach it
    bool splits = false;                    // says that it takes cells of a split model
    std::uint64_t memory = 0;               // bytes that it has for models; 0: it does not say
};

class Membership {
public:
    explicit Membership(std::map<std::string, std::vector<DatasetDeclaration>> declared)
        : declared_(std::move(declared)) {}

    /// The member whose session it is now. An older session of the node is told to close, and a declaration that
    /// differs from the last one is persisted. The caller has checked versions and limits.
    const Member& open(const SessionOpened& opened, CoordinatorEffects& effects);
    /// The node that has lost its session, or empty: an operator's, or not (or no longer) a node's.
    std::string close(Instant now, SessionId session);
    /// Forgets the node's sessions, an operator's too, and gives them: they are the caller's to close.
    std::vector<SessionId> revoke(std::string_view node);
    /// This process did not run for a while (StoodStill): nodes whose sessions are closed now, or while what came
    /// meanwhile is heard, gave up on us, and are expected back within the grace of a restart.
    void stood_still(Instant now) { stood_still_at_ = now; }
    [[nodiscard]] bool just_stood_still(Instant now) const {
        return stood_still_at_ && now <= *stood_still_at_ + ListeningClock::longest_gap;
    }
    [[nodiscard]] bool expects(std::string_view node) const { return expected_.contains(node); }
    /// A client that declared the dataset, or with `hosts` a host.
    [[nodiscard]] bool expects_any(std::string_view dataset, bool hosts) const;
    /// Nodes that have not come back in time, once; sorted by name.
    std::vector<std::string> give_up(Instant now);
    [[nodiscard]] Instant next_given_up() const;
    /// Marks silence or the end of it; nullptr when that session is no node's or nothing changed.
    const Member* set_silent(SessionId session, bool silent);

    [[nodiscard]] const Member* by_session(SessionId session) const;
    [[nodiscard]] const Member* by_node(std::string_view node) const;
    [[nodiscard]] std::size_t session_count() const { return nodes_by_session_.size() + operators_.size(); }
    /// Nodes, not operators; sorted by name.
    [[nodiscard]] const std::map<std::string, Member, std::less<>>& members() const { return members_; }
    /// Sorted names of clients that are there, speak, and hold the dataset.
    [[nodiscard]] std::vector<std::string> live_holders(std::string_view dataset) const;
    /// The examples that it declares of the dataset, 0: none, or it is not there.
    [[nodiscard]] std::uint64_t examples_of(std::string_view node, std::string_view dataset) const;
    /// Any node, there or not, ever declared it.
    [[nodiscard]] bool ever_declared(std::string_view dataset) const;
    [[nodiscard]] std::vector<std::string> known_datasets() const;
    [[nodiscard]] const std::map<std::string, std::vector<DatasetDeclaration>>& declared() const { return declared_; }

private:
    struct Expected {
        Instant until;
        std::string role;
    };
    void forget(SessionId session);

    std::map<std::string, Member, std::less<>> members_;
    std::map<SessionId, std::string> nodes_by_session_;
    std::map<SessionId, Member> operators_;
    std::map<std::string, std::vector<DatasetDeclaration>> declared_;
    std::map<std::string, Expected, std::less<>> expected_;
    std::optional<Instant> stood_still_at_;
};

}  // namespace causeway
