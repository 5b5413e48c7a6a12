// A library for LD_PRELOAD that shows oneDNN other caches than the processor has, on any x86-64 processor:
//
//   CAUSEWAY_CACHES=32+512+1024 LD_PRELOAD=build/tests/kernels/libpretended_caches.so PROGRAM
//
// (KiB of each level for one core, as in a device's signature). oneDNN asks by CPUID instructions, which nothing can be
// put in front of. So the processor's trap flag is set when the library's initialisers begin: after each instruction
// comes a SIGTRAP, whose handler gives an answer of its own where the next one is CPUID, until all caches have been
// asked for. That is some hundred instructions of a few hundredths of a second in all; from then on nothing is slower.
// A processor of another vendor than Intel is said to be Intel's, for no other is asked.
#include <cpuid.h>
#include <link.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

using Initialiser = void (*)(int, char**, char**);

constexpr std::uint32_t levels = 3;
constexpr greg_t trap_flag = 0x100;
std::array<std::uint32_t, levels> sizes_kib;
Initialiser replaced;  // of oneDNN, its first

[[noreturn]] void end_with(const char* message) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, message, std::strlen(message));
    _exit(1);
}

/// A cache of its own for each core, in 16 ways of lines of 64 bytes; after the last there is none.
void describe_cache(std::uint32_t level, std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
    constexpr std::uint32_t data = 1, unified = 3, ways = 16, line = 64;
    a = b = c = d = 0;
    if (level < levels) {
        a = (level == 0 ? data : unified) | (level + 1) << 5;
        b = (line - 1) | (ways - 1) << 22;
        c = sizes_kib[level] * 1024 / (ways * line) - 1;
    }
}

void answer_cpuid(greg_t* registers) {
    constexpr std::uint32_t vendor = 0, caches = 4;
    const auto leaf = static_cast<std::uint32_t>(registers[REG_RAX]);
    const auto index = static_cast<std::uint32_t>(registers[REG_RCX]);
    std::uint32_t a = 0, b = 0, c = 0, d = 0;
    __cpuid_count(leaf, index, a, b, c, d);
    if (leaf == vendor) {
        b = signature_INTEL_ebx;
        c = signature_INTEL_ecx;
        d = signature_INTEL_edx;
    }
    if (leaf == caches) {
        describe_cache(index, a, b, c, d);
        if (index == levels) {
            registers[REG_EFL] &= ~trap_flag;
        }
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    constexpr greg_t length = 2;
    registers[REG_RIP] += length;
}

void step(int, siginfo_t*, void* context) {
    auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto next_is_cpuid = [&] {
        const auto* code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
        return code[0] == 0x0f && code[1] == 0xa2;
    };
    while (next_is_cpuid()) {
        answer_cpuid(registers);
    }
}

void begin(int count, char** arguments, char** environment) {
    struct sigaction stepping {};
    stepping.sa_sigaction = step;
    stepping.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &stepping, nullptr);
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    replaced(count, arguments, environment);
}

void stand_before_the_first_initialiser(const link_map& library) {
    for (const auto* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag != DT_INIT_ARRAY) {
            continue;
        }
        auto* first = reinterpret_cast<Initialiser*>(library.l_addr + entry->d_un.d_ptr);
        const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        auto* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(first) & ~(size - 1));
        if (mprotect(page, size, PROT_READ | PROT_WRITE) != 0) {
            end_with("pretended_caches: oneDNN's list of initialisers cannot be written\n");
        }
        replaced = *first;
        *first = begin;
        return;
    }
}

/// The linker runs this before the initialisers of all other libraries (-z initfirst), the C library's included: hence
/// the environment as it is handed over.
__attribute__((constructor)) void pretend(int, char**, char** environment) {
    constexpr std::string_view name = "CAUSEWAY_CACHES=";
    const char* sizes = nullptr;
    for (; *environment != nullptr; ++environment) {
        sizes = std::string_view(*environment).starts_with(name) ? *environment + name.size() : sizes;
    }
    if (sizes == nullptr) {
        return;
    }
    if (std::sscanf(sizes, "%u+%u+%u", &sizes_kib[0], &sizes_kib[1], &sizes_kib[2]) != levels) {
        end_with("pretended_caches: CAUSEWAY_CACHES is three sizes in KiB, for instance 32+512+1024\n");
    }
    for (const auto* library = _r_debug.r_map; library != nullptr; library = library->l_next) {
        if (std::string_view(library->l_name).find("libdnnl.so") != std::string_view::npos) {
            stand_before_the_first_initialiser(*library);
        }
    }
}

}  // namespace
