// See lies.h.
#include "simulation/lies.h"

#include <algorithm>
#include <limits>

namespace causeway::simulation {
namespace {

Lease another_lease(RandomStream& random, Lease lease) {
    switch (random.below(7)) {
        case 0:
            lease.epoch += 1;
            break;
        case 1:
            lease.epoch -= 1;
            break;
        case 2:
            lease.round += 1;
            break;
        case 3:
            lease.round -= 1;
            break;
        case 4:
            lease.attempt += static_cast<std::uint32_t>(random.below(3)) - 1;
            break;
        case 5:
            lease.experiment = random.below(4);
            break;
        default:  // its own: what is said under it is about its own work
            break;
    }
    return lease;
}

Digest another_digest(RandomStream& random) {
    return sha256(std::to_string(random.next_u64()));
}

HeldUpdate another_update(RandomStream& random, HeldUpdate update) {
    switch (random.below(7)) {
        case 0:
            update.weight = -1;
            break;
        case 1:
            update.weight = std::int64_t{1} << 29;
            break;
        case 2:
            update.weight = std::numeric_limits<std::int64_t>::min();
            break;
        case 3:
            update.digest = another_digest(random);
            update.bytes = random.below(4'000'000);
            break;
        case 4:
            update.round += static_cast<std::uint32_t>(random.below(3)) - 1;
            break;
        case 5:
            update.start_model = another_digest(random);
            break;
        default:  // a replay of what it offered before
            break;
    }
    return update;
}

/// NaN in one value, the end cut off, bytes of no kind, or an earlier update with something after its end.
Bytes damaged(RandomStream& random, Bytes bytes, const Bytes& earlier) {
    switch (random.below(earlier.empty() ? 3 : 4)) {
        case 0:
            std::fill_n(bytes.end() - 4, 4, std::byte{0xff});  // the last value is a NaN
            return bytes;
        case 1:
            bytes.resize(random.below(bytes.size()));
            return bytes;
        case 2:
            for (auto& byte : bytes) {
                byte = static_cast<std::byte>(random.below(256));
            }
            return bytes;
        default:
            bytes = earlier;
            bytes.push_back(std::byte{0});
            return bytes;
    }
}

}  // namespace

Message forge(RandomStream& random, const Lease& own, const HeldUpdate& offer) {
    const auto lease = another_lease(random, own);
    switch (random.below(9)) {
        case 8:  // once more what it offered, in the hope that it is added once more
            return Offer{own, offer};
        case 0:
        case 1:
        case 2:
            return Offer{lease, another_update(random, offer)};
        case 3:
            return Progress{lease, 7, 3, std::numeric_limits<double>::quiet_NaN()};
        case 4:
            return Decline{lease, random.below(2) == 0 ? "dropped" : "policy_hours", "a lie"};
        case 5:
            return Request{random.next_u64(), "experiment.cancel", R"({"experiment":1})"};
        case 6:
            return Committed{lease.experiment, lease.round, another_digest(random), true, offer.digest};
        default:
            return Ended{lease.experiment, "succeeded", "a lie"};
    }
}

node::Trained LyingClientWork::train(const Assign& assign) {
    auto trained = honest_.train(assign);
    RandomStream random({.seed = seed_, .purpose = "lie", .round = assign.lease.round, .node = node_key(name_)});
    const auto bytes = trained.error ? Result<Bytes>(Bytes{}) : honest_.read_update(trained.update.digest);
    if (!bytes || bytes->empty()) {
        return trained;
    }
    if (random.uniform() < share_) {
        Forgery forgery{trained.update, damaged(random, *bytes, last_update_)};
        trained.update.digest = sha256(forgery.bytes);
        trained.update.bytes = forgery.bytes.size();
        forgeries_.insert_or_assign(trained.update.digest, std::move(forgery));
    }
    last_update_ = *bytes;
    return trained;
}

Result<Bytes> LyingClientWork::read_update(const Digest& update) {
    const auto forged = forgeries_.find(update);
    return forged != forgeries_.end() ? Result<Bytes>(forged->second.bytes) : honest_.read_update(update);
}

void LyingClientWork::resolve(const node::ResolvePending& what) {
    const auto forged = forgeries_.find(what.update.digest);
    honest_.resolve(forged == forgeries_.end() ? what : node::ResolvePending{forged->second.honest, what.counted});
}

}  // namespace causeway::simulation
