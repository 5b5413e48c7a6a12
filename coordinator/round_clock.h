// Where a round's time goes: one partition of its wall time, and one row per member.
//
// A round's time runs from the commit before it (or from when its experiment began to look for members) to its own
// commit. The whole is cut where the round as a whole went from one thing to the next:
//
//   commit      the transaction of the commit before, and at the end division, snapshot and flushes less the division
//   evaluate    it had to wait for the evaluation of the model before (evaluation.patience)
//   select      it had to wait for members that are there and free
//   distribute  until the member that came last had what it needs: assignment, model, data
//   train       its training, as it says itself;  collect  its update on the way, and waiting for room
//   verify      decoding and firewall;            aggregate  adding, and the division at the end
//
// The parts are differences of instants in their order, so they sum to the whole exactly. The member that came last
// is the one that the round waited for; what others did meanwhile is in their rows. Thread: loop. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/json.h"
#include "common/time.h"

namespace causeway {

struct TimeParts {
    Duration select{};
    Duration distribute{};
    Duration train{};
    Duration collect{};
    Duration verify{};
    Duration aggregate{};
    Duration commit{};
    Duration evaluate{};

    [[nodiscard]] Duration sum() const {
        return select + distribute + train + collect + verify + aggregate + commit + evaluate;
    }
    /// {"select": seconds, ...}, in the order of a round.
    [[nodiscard]] Json json() const;
};

class RoundClock {
public:
    enum class Wait { members, evaluation };

    /// A commit, or the moment from which the first round is looked for: the next round's time begins.
    void begin(Instant now);
    void commit_stored(Instant now);
    /// Until the round opens it waits for this.
    void waits(Instant now, Wait what);
    void opened(Instant now);
    // What members do; words that change nothing do no harm.
    void assigned(Instant now, const std::string& node);
    void working(Instant now, const std::string& node);
    void offered(Instant now, const std::string& node, double train_seconds);
    void absorbed(Instant now, const std::string& node, Duration verify, Duration aggregate);
    void left(Instant now, const std::string& node, const std::string& why);
    void closed(Instant now);

    struct Times {
        Duration wall{};
        TimeParts parts;
        std::string last;  // the member that the round waited for; empty: none
        Duration exchange{};  // from the first offer to the last addition, of members that were counted
        Json members;      // {node: {parts..., "end": counted, or why not}}, the slowest `most_rows`
    };
    /// At the commit of an open round. `division` is part of the time since closed().
    [[nodiscard]] Times times(Instant now, Duration division) const;

    static constexpr std::size_t most_rows = 256;

private:
    struct Row {
        std::optional<Instant> assigned;
        std::optional<Instant> working;
        std::optional<Instant> offered;
        std::optional<Instant> ended;
        Duration train{};
        Duration verify{};
        Duration aggregate{};
        std::string end;
    };
    void settle_wait(Instant now);
    [[nodiscard]] Duration exchange() const;
    [[nodiscard]] TimeParts parts_of(const Row& row, Instant from, Instant to) const;

    Instant begun_{};
    Instant waiting_since_{};
    Wait waits_for_ = Wait::members;
    std::optional<Instant> stored_;
    Instant opened_{};
    Instant closed_{};
    TimeParts before_;  // what the wait before the round was for
    std::map<std::string, Row> rows_;
};

}  // namespace causeway
