// A stretch of bytes that several may hold, and its owner: what is read once and goes to many is never copied.
//
// A part keeps its whole buffer alive. That is meant for chunks and small models, whose headers are a few words beside
// their bytes; who wants to keep a small part of something large for long copies it.
// Thread: any; the bytes never change.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "common/bytes.h"

namespace causeway {

class SharedBytes {
public:
    SharedBytes() = default;
    SharedBytes(Bytes bytes) : SharedBytes(std::make_shared<const Bytes>(std::move(bytes))) {}
    SharedBytes(std::shared_ptr<const Bytes> whole) : view_(whole ? ByteView(*whole) : ByteView()) {
        owner_ = std::move(whole);
    }
    /// `part` lies in what `owner` keeps.
    SharedBytes(std::shared_ptr<const void> owner, ByteView part) : owner_(std::move(owner)), view_(part) {}

    explicit operator bool() const { return owner_ != nullptr; }
    [[nodiscard]] ByteView view() const { return view_; }
    [[nodiscard]] std::size_t size() const { return view_.size(); }
    [[nodiscard]] bool empty() const { return view_.empty(); }
    [[nodiscard]] auto begin() const { return view_.begin(); }
    [[nodiscard]] auto end() const { return view_.end(); }
    /// Of what is held, not of who holds it.
    bool operator==(const SharedBytes& other) const { return std::ranges::equal(view_, other.view_); }

private:
    std::shared_ptr<const void> owner_;
    ByteView view_;
};

}  // namespace causeway
