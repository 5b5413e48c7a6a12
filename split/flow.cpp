// The flows that exist, one line each.
#include "split/flow.h"

#include <array>

#include <fmt/format.h>

#include "common/text.h"

// One line per flow; X is applied to the name of its file.
#define CAUSEWAY_FLOWS(X) X(local_epochs)

namespace causeway {

#define CAUSEWAY_DECLARE(name) extern const Flow name##_flow;
CAUSEWAY_FLOWS(CAUSEWAY_DECLARE)
#undef CAUSEWAY_DECLARE

std::span<const Flow* const> flows() {
#define CAUSEWAY_ENTRY(name) &name##_flow,
    static const std::array entries = {CAUSEWAY_FLOWS(CAUSEWAY_ENTRY)};
#undef CAUSEWAY_ENTRY
    return entries;
}

Result<const Flow*> find_flow(std::string_view name) {
    std::vector<std::string> names;
    for (const Flow* flow : flows()) {
        if (flow->name == name) {
            return flow;
        }
        names.emplace_back(flow->name);
    }
    const auto nearest = nearest_name(name, names);
    return fail(ErrorKind::not_found, "unknown_flow",
                fmt::format("there is no flow \"{}\"; {}", name.substr(0, 40),
                            nearest ? "did you mean \"" + *nearest + "\"?" : "there are " + join(names, ", ")));
}

Result<Program> compile_flow(std::string_view name, const FlowInput& input) {
    TRY_ASSIGN(const Flow* flow, find_flow(name));
    TRY_ASSIGN(Program program, flow->compile(input));
    TRY(check_program(program, input.chain));
    return program;
}

}  // namespace causeway
