// See lease.h. Loop thread; pure.
#include "coordinator/lease.h"

#include <algorithm>

namespace causeway {

bool MemberLease::resync() {
    if (over()) {
        return false;
    }
    state_ = State::active;
    ++attempt_;
    return true;
}

bool MemberLease::suspect(Instant now, Duration grace) {
    if (state_ != State::active) {
        return false;
    }
    state_ = State::suspected;
    deadline_ = after(now, std::max(rejoin_, grace));
    return true;
}

bool MemberLease::settle() {
    return finish(State::settled);
}

bool MemberLease::drop() {
    return finish(State::dropped);
}

bool MemberLease::finish(State state) {
    if (over()) {
        return false;
    }
    state_ = state;
    return true;
}

}  // namespace causeway
