// What happens next is a batch that is ready for its line, or one that has reached the host: the walk is a choice of
// the earliest of all groups, again and again, so that who shares a line or the host is served in the order of coming.
#include "split/round_walk.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace causeway {
namespace {

constexpr double never_again = std::numeric_limits<double>::infinity();

/// Seconds of so many bytes; no rate is no limit.
double on_line(double bytes, double rate) {
    return rate > 0 ? bytes / rate : 0.0;
}

/// The host: its one trainer, and its line, which all groups share. Copies of its segments go out in chunks, so that a
/// gradient waits for one of them at most, and a copy for all gradients.
class Host {
public:
    explicit Host(const SplitCosts& costs) : costs_(costs) {}

    double free = 0;  // when its trainer is

    double bring_in(double now, double bytes) {
        return line_in_ = std::max(line_in_, now) + on_line(bytes, costs_.host_downlink);
    }
    double send_out(double now, double bytes) {
        const double time = on_line(bytes, costs_.host_uplink);
        const double chunk = copies_ > now ? costs_.handover_seconds / chunks : 0.0;
        copies_ += copies_ > now ? time : 0.0;
        return line_out_ = std::max(line_out_, now) + chunk + time;
    }
    /// Behind what is on its way.
    double copy_out(double now) { return copies_ = std::max({copies_, line_out_, now}) + costs_.handover_seconds; }

private:
    static constexpr double chunks = 16;  // of a long transfer

    const SplitCosts& costs_;
    double line_in_ = 0, line_out_ = 0, copies_ = 0;  // when each is free
};

/// One group on its way through its tour.
class Tour {
public:
    Tour(std::span<const ClientProfile> clients, const SplitCosts& costs, Host& host)
        : clients_(clients), costs_(costs), host_(host) {
        begin_turn(0);
    }

    /// When its next batch is ready to be sent; never_again: there is none.
    [[nodiscard]] double ready() const { return ready_.empty() ? never_again : ready_.front().when; }
    /// When the next one that was sent can be served.
    [[nodiscard]] double arrival() const {
        return sent_.empty() ? never_again : std::max(sent_.front().when, host_ready_);
    }
    /// Of the two; never_again: its tour is over.
    [[nodiscard]] double next() const { return std::min(ready(), arrival()); }
    /// How much of a full batch that is.
    [[nodiscard]] double share() const { return sent_.front().share; }

    void send() {
        const ClientProfile& client = clients_[at_];
        auto [when, share] = ready_.front();
        ready_.pop_front();
        const double bytes = share * static_cast<double>(costs_.smashed_bytes);
        line_up_ = std::max(line_up_, when) + bytes / client.uplink;
        const double in = host_.bring_in(when, bytes);
        sent_.push_back({std::max(line_up_, in) + client.delay + costs_.host_delay, share});
    }
    /// When the last client's hand-over was done.
    [[nodiscard]] double end() const { return end_; }

    /// The host has sent the gradient of that batch.
    void served(double finish) {
        const ClientProfile& client = clients_[at_];
        const double share = sent_.front().share;
        sent_.pop_front();
        const double bytes = share * static_cast<double>(costs_.gradient_bytes);
        line_down_ = std::max(line_down_, finish) + bytes / client.downlink;
        const double back = std::max(line_down_, host_.send_out(finish, bytes)) + client.delay + costs_.host_delay;
        client_free_ = std::max(client_free_, back) + share * client.backward_seconds + client.update_seconds;
        if (next_ < batches()) {
            go_forward();
        } else if (sent_.empty() && ready_.empty()) {
            const double closed = client_free_ + client_closing(client, costs_);
            const double done = finish + costs_.host_update_seconds;
            const bool copy = costs_.copies == Copies::every_turn || place().last;
            const double asked = done + costs_.exchange.trips * costs_.host_delay;
            const double copied = copy && costs_.handover_seconds > 0 ? host_.copy_out(asked) : asked;
            ++at_;
            begin_turn(std::max(closed, copied) + costs_.record_seconds);
        }
    }

private:
    struct Batch {
        double when = 0;
        double share = 1;
    };

    /// Batches of its turn.
    [[nodiscard]] std::uint64_t batches() const { return clients_[at_].batches * costs_.local_epochs; }
    [[nodiscard]] TurnPlace place() const { return {.first = at_ == 0, .last = at_ + 1 == clients_.size()}; }

    /// The next client that has any examples; others hand on what they got.
    void begin_turn(double now) {
        for (next_ = 0; at_ < clients_.size(); ++at_) {
            const ClientProfile& client = clients_[at_];
            host_ready_ = now + host_opening(costs_, place());
            now += client_opening(client, costs_, place());
            if (batches() > 0) {
                client_free_ = line_up_ = line_down_ = now;
                while (next_ < batches() && next_ <= costs_.overlap) {
                    go_forward();
                }
                return;
            }
            now += client_closing(client, costs_) + costs_.record_seconds;
        }
        end_ = now;
    }

    void go_forward() {
        const ClientProfile& client = clients_[at_];
        double share = 1;
        const bool last = client.batches > 0 && next_ % client.batches == client.batches - 1;
        if (costs_.batch > 0 && last) {
            const auto before = (client.batches - 1) * costs_.batch;
            share = static_cast<double>(client.examples - before) / costs_.batch;
        }
        ++next_;
        client_free_ += share * client.forward_seconds;
        ready_.push_back({client_free_, share});
    }

    std::span<const ClientProfile> clients_;
    const SplitCosts& costs_;
    Host& host_;
    std::size_t at_ = 0;
    std::uint64_t next_ = 0;                                // batch to be sent
    std::deque<Batch> ready_;                               // and not sent yet, oldest first
    std::deque<Batch> sent_;                                // and not served yet
    double client_free_ = 0, line_up_ = 0, line_down_ = 0;  // when each is
    double host_ready_ = 0;  // to begin the turn
    double end_ = 0;
};

}  // namespace

double walk_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs) {
    Host host(costs);
    std::vector<Tour> tours;
    for (const auto& group : groups) {
        tours.emplace_back(group, costs, host);
    }
    for (;;) {
        const auto next = std::ranges::min_element(tours, {}, &Tour::next);
        if (next == tours.end() || next->next() == never_again) {
            break;
        }
        if (next->ready() <= next->arrival()) {
            next->send();
            continue;
        }
        const double share = next->share();
        const double finish = std::max(next->arrival(), host.free) + share * costs.host_batch_seconds;
        host.free = finish + costs.host_update_seconds;
        next->served(finish);
    }
    double end = host.free;
    for (const auto& tour : tours) {
        end = std::max(end, tour.end());
    }
    return end + costs.aggregation_seconds;
}

double walk_together(std::span<const ClientProfile> clients, const SplitCosts& costs) {
    auto alone = costs;
    alone.handover_seconds = 0;  // one copy, when all are done
    Host host(alone);
    std::vector<Tour> tours;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        tours.emplace_back(clients.subspan(i, 1), alone, host);
        most = std::max(most, clients[i].batches);
    }
    for (std::uint64_t batch = 0; batch < most * costs.local_epochs; ++batch) {
        for (std::size_t i = 0; i < tours.size(); ++i) {
            if (batch % most >= clients[i].batches) {
                continue;
            }
            while (tours[i].arrival() == never_again) {
                std::ranges::min_element(tours, {}, &Tour::ready)->send();
            }
            const double share = tours[i].share();
            const double finish = std::max(tours[i].arrival(), host.free) + share * costs.host_batch_seconds;
            host.free = finish + costs.host_update_seconds;
            tours[i].served(finish);
        }
    }
    double end = host.free + host_closing(costs, {true, true}) + costs.record_seconds;
    for (const auto& tour : tours) {
        end = std::max(end, tour.end());
    }
    return end + costs.aggregation_seconds;
}

}  // namespace causeway
