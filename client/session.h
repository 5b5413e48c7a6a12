// The client's side of a federation as one pure state machine: connect, say hello, work, offer, keep, resolve.
//
// Two things outlive a connection: the work at hand (it goes on while the link is down and continues under the next
// lease) and held updates (each is kept until the coordinator says what became of its round; after any restart the
// client asks by naming them in its Hello). One assignment at a time. Thread: loop. Pure.
//
//   link:  waiting -> connecting -> greeting -> online -> waiting ...     (doubling pauses with a keyed jitter)
//   work:  none -> fetching -> training -> none, with an update held
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/effects.h"
#include "client/leaves.h"
#include "client/turns.h"

namespace causeway::node {

/// Why the node's own policy does not want an assignment.
struct Objection {
    std::string code;
    std::string message;
};

struct SessionOptions {
    std::string node;
    std::string software;
    std::string compute_signature;
    std::vector<DatasetDeclaration> datasets;
    std::vector<HeldUpdate> held;  // what the state folder still holds
    std::vector<std::uint64_t> experiments;  // whose state it keeps
    std::vector<std::string> addresses{};    // where other nodes reach it
    bool splits = false;                     // takes cells of split models: its policy allows it
    std::uint64_t memory = 0;                // bytes for models, 0: it does not say
    /// Asked before anything is fetched; may be empty: all is welcome. Pure, but for the hour at the node.
    std::function<std::optional<Objection>(const Assign&, Asked)> policy;
    std::uint64_t jitter_seed = 0;  // of the pauses between connection attempts only
};

// Pauses between connection attempts: short enough that a restarted coordinator has its members back well within its
// grace (coordinator/limits.h), long enough that a thousand waiting clients do not load it.
constexpr Duration reconnect_first = std::chrono::milliseconds(250);
constexpr Duration reconnect_longest = std::chrono::seconds(8);
constexpr Duration greeting_limit = std::chrono::seconds(10);  // Hello to Welcome
constexpr Duration fetch_retry_first = std::chrono::seconds(1);
constexpr Duration fetch_retry_longest = std::chrono::seconds(30);
constexpr Duration progress_interval = std::chrono::milliseconds(500);  // as often as a person sees a change
constexpr std::size_t max_evaluations = 64;  // asked for and not done: one experiment asks for one a round
constexpr std::size_t max_held_told = 64;                               // in one Hello; the coordinator's limit

class Session {
public:
    explicit Session(SessionOptions options);

    /// Once, before any step.
    [[nodiscard]] Effects start(Instant now);
    [[nodiscard]] Effects step(Instant now, const Event& event);

    [[nodiscard]] bool online() const { return link_ == Link::online; }
    [[nodiscard]] bool working() const { return work_.has_value() || turns_.working(); }
    [[nodiscard]] bool holds() const { return !held_.empty(); }
    [[nodiscard]] std::vector<HeldUpdate> held() const;

private:
    enum class Link { waiting, connecting, greeting, online };
    /// The assignment at hand. `trained_under` is the lease that the trainer was started with: its answer names it.
    struct Work {
        Assign assign;
        bool training = false;
        bool fetching = false;
        Lease trained_under;
        Duration fetch_pause{};
        Instant fetch_at = never;
        Progress progress;
        Instant progress_at{};  // not before this
    };
    using HeldKey = std::pair<std::uint64_t, std::uint32_t>;  // experiment, round

    void on(Instant now, const Connected& event, Effects& effects);
    void on(Instant now, const Disconnected& event, Effects& effects);
    void on(Instant now, const MessageReceived& event, Effects& effects);
    void on(Instant now, const Tick& event, Effects& effects);
    void on(Instant now, const ModelFetched& event, Effects& effects);
    void on(Instant now, const ModelLost& event, Effects& effects);
    void on(Instant now, const TrainingProgress& event, Effects& effects);
    void on(Instant now, const Trained& event, Effects& effects);
    void on(Instant now, const Evaluated& event, Effects& effects);
    void on(Instant now, const TurnDone& event, Effects& effects);

    void hear(Instant now, const Welcome& message, Effects& effects);
    void hear(Instant now, const Assign& message, Effects& effects);
    void hear(Instant now, const Refused& message, Effects& effects);
    void hear(Instant now, const Committed& message, Effects& effects);
    void hear(Instant now, const Dropped& message, Effects& effects);
    void hear(Instant now, const Ended& message, Effects& effects);
    void hear(Instant now, const ErrorNotice& message, Effects& effects);
    void hear(Instant now, const Request& message, Effects& effects);
    template <class Other>
    void hear(Instant, const Other&, Effects&) {}  // not for a client's machine; the link has counted it

    void next_evaluation(Effects& effects);
    void lose_link(Instant now, const std::string& why, Effects& effects);
    void begin(const Assign& assign, Effects& effects);
    void fetch(Effects& effects);
    void train(Effects& effects);
    void fetch_later(Instant now, const std::string& why, Effects& effects);
    void stop_work(Effects& effects);
    void resolve(std::map<HeldKey, HeldUpdate>::iterator held, bool counted, Effects& effects);
    void drop_older(const Assign& assign, Effects& effects);
    void send_progress(Instant now, Effects& effects);
    void send(Message message, Effects& effects) const;
    [[nodiscard]] Instant deadline() const;
    [[nodiscard]] Duration pause_before_attempt(std::uint32_t attempt) const;

    SessionOptions options_;
    Link link_ = Link::waiting;
    Instant link_deadline_ = never;  // next attempt while waiting; end of patience while greeting
    std::uint32_t attempts_ = 0;     // since the last Welcome
    std::optional<Work> work_;
    std::optional<Offer> after_welcome_;  // made since the Hello, which does not name it
    Turns turns_;
    std::map<HeldKey, HeldUpdate> held_;
    std::deque<Evaluate> evaluations_;  // the first is being done; of one session, its requests end with it
    std::set<std::uint64_t> kept_;  // experiments with a base: not heard to be over
};

}  // namespace causeway::node
