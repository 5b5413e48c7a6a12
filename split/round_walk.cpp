// A group's batches reach the host in their order, so the walk is a choice of the earliest, again and again.
#include "split/round_walk.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace causeway {
namespace {

constexpr double never_again = std::numeric_limits<double>::infinity();

/// One group on its way through its tour.
class Tour {
public:
    Tour(std::span<const ClientProfile> clients, const SplitCosts& costs) : clients_(clients), costs_(costs) {
        begin_turn(0);
    }

    /// When its next batch reaches the host; never_again: its tour is over.
    [[nodiscard]] double arrival() const { return sent_.empty() ? never_again : sent_.front().arrival; }
    /// How much of a full batch that is.
    [[nodiscard]] double share() const { return sent_.front().share; }
    /// When the last client's hand-over was done.
    [[nodiscard]] double end() const { return end_; }

    /// The host has sent the gradient of that batch.
    void served(double finish) {
        const ClientProfile& client = clients_[at_];
        const double share = sent_.front().share;
        sent_.pop_front();
        line_down_ =
            std::max(line_down_, finish) + share * static_cast<double>(costs_.gradient_bytes) / client.downlink;
        client_free_ = std::max(client_free_, line_down_ + client.delay) + share * client.backward_seconds;
        if (next_ < batches()) {
            send_batch();
        } else if (sent_.empty()) {
            ++at_;
            begin_turn(client_free_ + segment_over(client.uplink, client) + costs_.handover_seconds);
        }
    }

private:
    struct Sent {
        double arrival = 0;
        double share = 1;
    };

    [[nodiscard]] std::uint64_t batches() const { return clients_[at_].batches * costs_.local_epochs; }

    [[nodiscard]] double segment_over(double rate, const ClientProfile& client) const {
        return static_cast<double>(costs_.client_segment_bytes) / rate + transfer_ways * client.delay;
    }

    /// The next client that has any examples; others hand on what they got.
    void begin_turn(double now) {
        for (next_ = 0; at_ < clients_.size(); ++at_) {
            const ClientProfile& client = clients_[at_];
            now += segment_over(client.downlink, client);
            if (batches() > 0) {
                client_free_ = line_up_ = line_down_ = now;
                while (next_ < batches() && next_ <= costs_.overlap) {
                    send_batch();
                }
                return;
            }
            now += segment_over(client.uplink, client) + costs_.handover_seconds;
        }
        end_ = now;
    }

    void send_batch() {
        const ClientProfile& client = clients_[at_];
        double share = 1;
        const bool last = client.batches > 0 && next_ % client.batches == client.batches - 1;
        if (costs_.batch > 0 && last) {
            const auto before = (client.batches - 1) * costs_.batch;
            share = static_cast<double>(client.examples - before) / costs_.batch;
        }
        ++next_;
        client_free_ += share * client.forward_seconds;
        line_up_ = std::max(line_up_, client_free_) + share * static_cast<double>(costs_.smashed_bytes) / client.uplink;
        sent_.push_back({line_up_ + client.delay, share});
    }

    std::span<const ClientProfile> clients_;
    const SplitCosts& costs_;
    std::size_t at_ = 0;
    std::uint64_t next_ = 0;                                // batch to be sent
    std::deque<Sent> sent_;                                 // and not served yet, oldest first
    double client_free_ = 0, line_up_ = 0, line_down_ = 0;  // when each is
    double end_ = 0;
};

}  // namespace

double walk_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs) {
    std::vector<Tour> tours;
    for (const auto& group : groups) {
        tours.emplace_back(group, costs);
    }
    double host_free = 0;
    for (;;) {
        const auto next = std::ranges::min_element(tours, {}, &Tour::arrival);
        if (next == tours.end() || next->arrival() == never_again) {
            break;
        }
        const double share = next->share();
        const double finish = std::max(next->arrival(), host_free) + share * costs.host_batch_seconds;
        host_free = finish + share * costs.host_update_seconds;
        next->served(finish);
    }
    double end = host_free;
    for (const auto& tour : tours) {
        end = std::max(end, tour.end());
    }
    return end + costs.aggregation_seconds;
}

double walk_together(std::span<const ClientProfile> clients, const SplitCosts& costs) {
    auto alone = costs;
    alone.handover_seconds = 0;  // one copy, when all are done
    std::vector<Tour> tours;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        tours.emplace_back(clients.subspan(i, 1), alone);
        most = std::max(most, clients[i].batches);
    }
    double host_free = 0;
    for (std::uint64_t batch = 0; batch < most * costs.local_epochs; ++batch) {
        for (std::size_t i = 0; i < tours.size(); ++i) {
            if (batch % most >= clients[i].batches) {
                continue;
            }
            const double share = tours[i].share();
            const double finish = std::max(tours[i].arrival(), host_free) + share * costs.host_batch_seconds;
            host_free = finish + share * costs.host_update_seconds;
            tours[i].served(finish);
        }
    }
    double end = host_free;
    for (const auto& tour : tours) {
        end = std::max(end, tour.end());
    }
    return end + costs.handover_seconds + costs.aggregation_seconds;
}

}  // namespace causeway
