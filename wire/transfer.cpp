// Credits, order, sizes and the measured rate.
#include "wire/transfer.h"

#include <algorithm>

namespace causeway {
namespace {

constexpr double rate_weight = 0.3;  // of the newest measurement
constexpr std::uint32_t credit_pair = 2;
constexpr std::uint64_t telling_bytes = 64 * 1024;  // less says more of the way's length than of its width

}  // namespace

// ---------------------------------------------------------------- sender

TransferSender::TransferSender(const Pull& pull, std::uint64_t total, Instant now, ChunkPace pace)
    : transfer_(pull.transfer),
      total_(total),
      position_(pull.offset),
      credits_(pull.credits),
      window_(pull.credits),
      pace_(pace),
      measured_(pull.offset),
      progress_at_(now),
      rate_since_(now) {}

Result<TransferSender> TransferSender::start(const Pull& pull, std::uint64_t total, Instant now, ChunkPace pace) {
    if (pull.offset > total) {
        return fail(ErrorKind::invalid, "bad_offset", "the pull starts beyond the blob's end");
    }
    if (pull.credits == 0 || pull.credits > max_transfer_credits) {
        return fail(ErrorKind::invalid, "bad_credits", "a pull grants 1 to 64 credits");
    }
    return TransferSender(pull, total, now, pace);
}

// A credit is used when the piece is handed out: what is read from disk is what will be sent.
std::optional<TransferSender::Piece> TransferSender::next() {
    if (credits_ == 0 || all_sent()) {
        return std::nullopt;
    }
    --credits_;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes(), total_ - position_));
    const Piece piece{position_, size};
    position_ += size;
    return piece;
}

Status TransferSender::credit(const Credit& credit, Instant now) {
    if (credit.credits == 0 || credit.credits > window_ - credits_) {
        return fail(ErrorKind::corrupt, "bad_credits", "more credits came back than were used");
    }
    credits_ += credit.credits;
    progress_at_ = now;
    const auto bytes = std::uint64_t{credit.credits} * chunk_bytes();
    pace_.measure(bytes, now - rate_since_);
    rate_since_ = now;
    measured_ = std::min(position_, measured_ + bytes);
    return {};
}

ChunkPace TransferSender::pace_at_end(Instant now) const {
    auto learnt = pace_;
    if (position_ - measured_ >= telling_bytes) {
        learnt.measure(position_ - measured_, now - rate_since_);
    }
    return learnt;
}

// The rate that comes back decides the chunk: at most 100 ms of it, so that a slow link stays responsive.
void ChunkPace::measure(std::uint64_t bytes, Duration elapsed) {
    const double rate = static_cast<double>(bytes) / std::max(seconds(elapsed), 1e-6);
    rate_ = rate_ == 0 ? rate : (1 - rate_weight) * rate_ + rate_weight * rate;
    const double wanted = std::clamp(rate_ * seconds(chunk_time), static_cast<double>(min_chunk_bytes),
                                     static_cast<double>(max_chunk_bytes));
    chunk_bytes_ = static_cast<std::size_t>(wanted) / min_chunk_bytes * min_chunk_bytes;
}

// ---------------------------------------------------------------- receiver

TransferReceiver::TransferReceiver(std::uint64_t transfer, const Digest& digest, std::uint64_t total,
                                   std::uint64_t held, Instant now)
    : transfer_(transfer), digest_(digest), total_(total), position_(held), progress_at_(now) {
    ASSERT(held <= total);  // the caller has cut what it holds to the declared size
}

// Order is strict because TLS delivers in order: anything else is a broken or hostile sender, not the network.
Status TransferReceiver::accept(const Chunk& chunk, Instant now) {
    if (chunk.total != total_) {
        return fail(ErrorKind::corrupt, "wrong_size",
                    "the sender's blob has " + std::to_string(chunk.total) + " bytes, " + std::to_string(total_) +
                        " were declared");
    }
    if (chunk.offset != position_) {
        return fail(ErrorKind::corrupt, "out_of_order",
                    "a chunk at " + std::to_string(chunk.offset) + " where " + std::to_string(position_) + " was due");
    }
    if (chunk.payload.empty() || chunk.payload.size() > total_ - position_ || chunk.payload.size() > max_chunk_bytes) {
        return fail(ErrorKind::corrupt, "wrong_size", "a chunk of " + std::to_string(chunk.payload.size()) + " bytes");
    }
    hasher_.update(chunk.payload);
    position_ += chunk.payload.size();
    progress_at_ = now;
    return {};
}

std::optional<Credit> TransferReceiver::written() {
    if (++owed_ < credit_pair || complete()) {
        return std::nullopt;
    }
    return Credit{transfer_, std::exchange(owed_, 0)};
}

Status TransferReceiver::verify() {
    ASSERT(complete());
    if (hasher_.finish() != digest_) {
        return fail(ErrorKind::corrupt, "digest_mismatch",
                    "what arrived is not " + digest_.short_hex() + "...: it is fetched again from the start");
    }
    return {};
}

Error transfer_error(const TransferEnd& end) {
    const auto kind = end.code == "not_found"    ? ErrorKind::not_found
                      : end.code == "overloaded" ? ErrorKind::overloaded
                      : end.code == "cancelled"  ? ErrorKind::disconnected
                      : end.code == "refused"    ? ErrorKind::refused
                      : end.code == "stalled"    ? ErrorKind::timed_out
                                                 : ErrorKind::invalid;  // `io` is what this machine cannot do
    return {kind, end.code.empty() ? "cancelled" : end.code, "the sender ended the transfer: " + end.message};
}

}  // namespace causeway
