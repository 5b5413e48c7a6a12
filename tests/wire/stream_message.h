// A message of a stream as the tests of streams send it, all of them in one experiment.
//
// Its bytes tell its size and its batch apart from others'. Thread: any.
#pragma once

#include "wire/message.h"

namespace causeway {

constexpr std::uint64_t experiment = 7;

inline StreamData message(std::size_t size, std::uint32_t batch = 0) {
    Bytes payload(size);
    for (std::size_t i = 0; i < size; i += 97) {
        payload[i] = static_cast<std::byte>(i + batch);
    }
    return {{1, experiment, 2, 1}, 1, 0, 0, batch, 0, 8, 0, size, std::move(payload)};
}

}  // namespace causeway
