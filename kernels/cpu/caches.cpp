// The way oneDNN asks (Xbyak's util::Cpu, in platform::get_per_core_cache_size): CPUID leaf 4 describes the caches and
// how many logical processors share each, leaf 11 says how many of these there are at all and how many in a core
// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID).
#include "kernels/cpu/caches.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace causeway::cpu {
namespace {

struct Registers {
    std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t index) {
    Registers r;
    __cpuid_count(leaf, index, r.a, r.b, r.c, r.d);
    return r;
}

constexpr std::uint32_t bits(std::uint32_t value, int first, int last) {
    return (value >> first) & ((std::uint32_t{1} << (last - first + 1)) - 1);
}

struct LogicalProcessors {
    std::uint32_t of_a_core = 0, of_all = 0;  // 0: the processor does not say
};

LogicalProcessors logical_processors(std::uint32_t last_leaf) {
    constexpr std::uint32_t topology = 11, of_threads = 1, of_cores = 2, levels = 2;
    LogicalProcessors found;
    for (std::uint32_t level = 0; last_leaf >= topology && level < levels; ++level) {
        const auto r = cpuid(topology, level);
        const auto kind = bits(r.c, 8, 15);
        if (kind == of_threads) {
            found.of_a_core = bits(r.b, 0, 15);
        } else if (kind == of_cores) {
            found.of_all = bits(r.b, 0, 15);
        }
    }
    return found;
}

}  // namespace

std::string caches_as_onednn_sees_them() {
    constexpr std::uint32_t caches = 4, none = 0, data = 1, unified = 3, most_levels = 10;
    const auto about = cpuid(0, 0);
    const bool is_intel = about.b == signature_INTEL_ebx && about.c == signature_INTEL_ecx;
    std::string text;
    auto [of_a_core, of_all] = logical_processors(about.a);
    for (std::uint32_t index = 0; is_intel && about.a >= caches && index < most_levels; ++index) {
        const auto r = cpuid(caches, index);
        const auto kind = bits(r.a, 0, 4);
        if (kind == none) {
            break;
        }
        if (kind != data && kind != unified) {
            continue;
        }
        auto sharing = bits(r.a, 14, 25) + 1;
        sharing = of_all == 0 ? sharing : std::min(sharing, of_all);
        const std::uint64_t bytes = std::uint64_t{bits(r.b, 22, 31) + 1} * (bits(r.b, 12, 21) + 1) *
                                    (bits(r.b, 0, 11) + 1) * (std::uint64_t{r.c} + 1);
        of_a_core = of_a_core == 0 ? sharing : of_a_core;
        text += fmt::format("{}{}", text.empty() ? "" : "+", bytes / std::max(sharing / of_a_core, 1u) / 1024);
    }
    return text.empty() ? "32+512+1024" : text;
}

}  // namespace causeway::cpu
