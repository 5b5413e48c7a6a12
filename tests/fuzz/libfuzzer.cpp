// libFuzzer's entry: one binary for all targets, since linking eighteen would take longer than searching.
//
//   CAUSEWAY_FUZZ=list causeway_fuzz           the targets' names
//   CAUSEWAY_FUZZ=NAME causeway_fuzz ...       searches with that target; the rest are libFuzzer's own options
//   CAUSEWAY_FUZZ_SEEDS=FOLDER                 first writes the target's seeds there
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "common/file.h"
#include "tests/fuzz/targets.h"

namespace causeway {
namespace {

const FuzzTarget* chosen_target = nullptr;

std::string from_environment(const char* name) {
    const char* value = std::getenv(name);  // NOLINT: one thread
    return value == nullptr ? "" : value;
}

void choose() {
    const auto wanted = from_environment("CAUSEWAY_FUZZ");
    for (const auto* target : all_targets()) {
        if (wanted == "list") {
            std::cout << target->name << "\n";
        } else if (wanted == target->name) {
            chosen_target = target;
        }
    }
    if (chosen_target == nullptr) {
        std::exit(wanted == "list" ? 0 : 2);
    }
    const auto folder = from_environment("CAUSEWAY_FUZZ_SEEDS");
    int number = 0;
    for (const auto& seed : folder.empty() ? std::vector<Bytes>{} : chosen_target->seeds()) {
        if (!write_file_durably(folder + "/seed-" + std::to_string(number++), seed)) {
            std::exit(2);
        }
    }
}

}  // namespace
}  // namespace causeway

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    causeway::choose();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    causeway::chosen_target->run(std::as_bytes(std::span(data, size)));
    return 0;
}
