// See lease.h. Loop thread; pure.
#include "coordinator/lease.h"

namespace causeway {

bool MemberLease::resync() {
    if (over()) {
        return false;
    }
    state_ = State::active;
    ++attempt_;
    return true;
}

bool MemberLease::suspect(Instant now) {
    if (state_ != State::active) {
        return false;
    }
    state_ = State::suspected;
    deadline_ = after(now, rejoin_);
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
