// The whole file is written at each new head: a few kilobytes, a few times a day. Thread: as in audit_heads.h.
//
// A file that is no list of heads is evidence, or was damaged: it is never written over.
#include "client/audit_heads.h"

#include <iterator>

#include "common/file.h"
#include "common/json.h"
#include "common/log.h"

namespace causeway::node {
namespace {

constexpr std::uint64_t longest_file = 1 << 20;
constexpr std::ptrdiff_t newest = most_audit_heads / 2;

tl::unexpected<Error> damaged_heads(const std::filesystem::path& file) {
    return fail(ErrorKind::corrupt, "state_damaged",
                file.string() + ": no list of the audit log's heads; move it away, and keep it if it may be evidence");
}

Digest check_of(const Json& all) {
    Hasher hasher;
    hasher.update(all["federation"].text() + " " + std::to_string(all["seen"].integer()) + " " +
                  std::to_string(all["stride"].integer(1)));
    for (const auto& head : all["heads"].items()) {
        hasher.update(" " + head.text());
    }
    return hasher.finish();
}

/// An older file has no check, and four fields. A name that was damaged would stand for its field's default.
bool is_whole(const Json& all) {
    if (all["check"].is_null()) {
        return all.fields().size() <= 4;
    }
    return all.has("federation") && all.has("seen") && all.has("stride") && all["check"].text() == check_of(all).hex();
}

}  // namespace

Result<AuditHeads> AuditHeads::open_or_begin(const std::filesystem::path& state) {
    auto known = open(state);
    if (known || known.error().kind != ErrorKind::corrupt) {
        return known;
    }
    const auto file = state / "audit_heads";
    std::error_code error;
    std::filesystem::rename(file, file.string() + ".damaged", error);
    if (error) {
        return known;
    }
    log_warn("node", file.string() + ": the noted heads of the audit log were damaged; they are kept as "
                                     "audit_heads.damaged, and heads are noted anew from here on");
    return AuditHeads(file);
}

Result<AuditHeads> AuditHeads::open(const std::filesystem::path& state) {
    AuditHeads known(state / "audit_heads");
    const auto bytes = read_file(known.file_, longest_file);
    if (!bytes) {
        return bytes.error().kind == ErrorKind::not_found ? Result<AuditHeads>(std::move(known)) : fail(bytes.error());
    }
    const auto json = Json::parse(as_text(*bytes));
    if (!json || !(*json)["heads"].is_array() || !is_whole(*json)) {
        return damaged_heads(known.file_);
    }
    known.federation_ = (*json)["federation"].text();
    for (const auto& item : (*json)["heads"].items()) {
        const auto head = digest_from_hex(item.text());
        if (!head) {
            return damaged_heads(known.file_);
        }
        known.heads_.push_back(*head);
    }
    const auto seen = (*json)["seen"].integer();
    const auto stride = (*json)["stride"].integer(1);
    if (known.heads_.size() > most_audit_heads || seen < std::ssize(known.heads_) || stride < 1) {
        return damaged_heads(known.file_);
    }
    known.seen_ = static_cast<std::uint64_t>(seen);
    known.stride_ = static_cast<std::uint64_t>(stride);
    return known;
}

Status AuditHeads::note(const std::string& federation, const Digest& head) {
    if (!heads_.empty() && heads_.back() == head) {
        return {};
    }
    auto next = *this;
    next.federation_ = federation;
    next.add(head);
    TRY(next.save());
    *this = std::move(next);
    return {};
}

/// The oldest of the newest half becomes old: it stays if its number is a multiple of the stride.
void AuditHeads::add(const Digest& head) {
    heads_.push_back(head);
    ++seen_;
    if (std::ssize(heads_) <= newest) {
        return;
    }
    const auto oldest = heads_.end() - newest - 1;
    if ((seen_ - static_cast<std::uint64_t>(newest) - 1) % stride_ != 0) {
        heads_.erase(oldest);
        return;
    }
    if (heads_.size() > most_audit_heads) {  // every other one of the old goes, the first stays
        stride_ *= 2;
        const auto old = heads_.size() - static_cast<std::size_t>(newest);
        std::vector<Digest> kept;
        for (std::size_t at = 0; at < heads_.size(); ++at) {
            if (at >= old || at % 2 == 0) {
                kept.push_back(heads_[at]);
            }
        }
        heads_ = std::move(kept);
    }
}

Status AuditHeads::save() const {
    auto texts = Json::array();
    for (const auto& each : heads_) {
        texts.push(each.hex());
    }
    auto all = Json::object().set("federation", federation_).set("seen", seen_).set("stride", stride_);
    all.set("heads", std::move(texts));
    const auto check = check_of(all).hex();
    return write_file_durably(file_, as_bytes(all.set("check", check).dump() + "\n"));
}

}  // namespace causeway::node
