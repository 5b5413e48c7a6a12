// Each group has at most one batch on its way to the host, so the walk is a choice of the earliest, again and again.
#include "split/round_walk.h"

#include <algorithm>
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
    [[nodiscard]] double arrival() const { return arrival_; }
    /// How much of a full batch that is.
    [[nodiscard]] double share() const { return share_; }
    /// When the last client's hand-over was done.
    [[nodiscard]] double end() const { return end_; }

    /// The host has sent the gradient of that batch.
    void served(double finish) {
        const ClientProfile& client = clients_[at_];
        const double ready = finish + share_ * static_cast<double>(costs_.gradient_bytes) / client.downlink +
                             client.delay + share_ * client.backward_seconds;
        if (++batch_ < batches()) {
            send_batch(ready);
            return;
        }
        const double back = static_cast<double>(costs_.client_segment_bytes) / client.uplink + client.delay;
        ++at_;
        begin_turn(ready + back + costs_.handover_seconds);
    }

private:
    [[nodiscard]] std::uint64_t batches() const { return clients_[at_].batches * costs_.local_epochs; }

    /// The next client that has any examples; others hand on what they got.
    void begin_turn(double now) {
        for (batch_ = 0; at_ < clients_.size(); ++at_) {
            const ClientProfile& client = clients_[at_];
            now += static_cast<double>(costs_.client_segment_bytes) / client.downlink + client.delay;
            if (batches() > 0) {
                send_batch(now);
                return;
            }
            now += static_cast<double>(costs_.client_segment_bytes) / client.uplink + client.delay +
                   costs_.handover_seconds;
        }
        arrival_ = never_again;
        end_ = now;
    }

    void send_batch(double now) {
        const ClientProfile& client = clients_[at_];
        share_ = 1;
        const bool last = client.batches > 0 && batch_ % client.batches == client.batches - 1;
        if (costs_.batch > 0 && last) {
            const auto before = (client.batches - 1) * costs_.batch;
            share_ = static_cast<double>(client.examples - before) / costs_.batch;
        }
        arrival_ = now + share_ * (client.forward_seconds + static_cast<double>(costs_.smashed_bytes) / client.uplink) +
                   client.delay;
    }

    std::span<const ClientProfile> clients_;
    const SplitCosts& costs_;
    std::size_t at_ = 0;
    std::uint64_t batch_ = 0;
    double share_ = 1;
    double arrival_ = never_again;
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

}  // namespace causeway
