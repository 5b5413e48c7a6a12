// Who may join: makes tokens, answers enrolments, and finds models for export. The work is done on the store thread.
//
// Thread: called on the loop; answers come back through the callbacks, from the store thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/json.h"
#include "coordinator/store_thread.h"
#include "wire/address.h"
#include "wire/identity.h"
#include "wire/message.h"

namespace causeway {

struct AdmissionOptions {
    Authority authority;
    std::vector<Address> token_addresses;
    std::function<std::int64_t()> unix_now = wall_clock_unix_s;
};

class Admission {
public:
    Admission(AdmissionOptions options, StoreThread& store);

    /// {name, role, expires_seconds} -> {token, name, role, expires_unix_s}
    ///
    /// errors   invalid: name, role or expiry; refused `name_taken`
    void new_token(const Json& body, std::function<void(Result<Json>)> done);
    /// A JoinReply, or the refusal as an ErrorNotice.
    void enrol(const JoinRequest& request, std::function<void(Message)> done);
    [[nodiscard]] const std::string& federation() const { return options_.authority.federation; }

private:
    AdmissionOptions options_;
    StoreThread& store_;
    Digest authority_key_;
};

}  // namespace causeway
