// The canonical text of a program, and its counts.
#include "model/program.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::array<std::string_view, op_code_count> op_names = {
    "load", "forward", "loss",  "backward", "send",      "recv",     "gradient_final", "sync",
    "wait", "step",    "stash", "snapshot", "recompute", "deadline", "repeat"};

std::string ranges_text(const Instruction& instruction) {
    std::string text(to_string(instruction.arena));
    for (const Range& range : instruction.ranges.ranges()) {
        text += fmt::format(" [{}, {})", range.begin, range.end);
    }
    return text;
}

std::string layers_text(LayerInterval layers) {
    return fmt::format("[{}, {})", layers.begin, layers.end);
}

std::string operands(const Instruction& instruction) {
    switch (instruction.code) {
        case OpCode::forward:
        case OpCode::backward:
        case OpCode::recompute:
            return " " + layers_text(instruction.layers);
        case OpCode::step:
            return " " + (instruction.layers.empty() ? ranges_text(instruction) : layers_text(instruction.layers));
        case OpCode::send:
            return fmt::format(" {} to {}", to_string(instruction.payload), instruction.index);
        case OpCode::receive:
            return fmt::format(" {} from {}", to_string(instruction.payload), instruction.index);
        case OpCode::gradient_final:
        case OpCode::wait:
        case OpCode::deadline:
            return fmt::format(" {}", instruction.index);
        case OpCode::stash:
            return instruction.index == 0 ? std::string() : fmt::format(" {}", instruction.index);
        case OpCode::sync:
        case OpCode::snapshot:
            return instruction.keeps_run() ? std::string()
                                           : fmt::format(" {} {}", instruction.index, ranges_text(instruction));
        default:
            return {};
    }
}

void append(std::string& text, const std::vector<Instruction>& instructions, std::size_t indent) {
    for (const Instruction& instruction : instructions) {
        text.append(indent, ' ');
        if (instruction.code != OpCode::repeat) {
            text += fmt::format("{}{}\n", to_string(instruction.code), operands(instruction));
            continue;
        }
        text += fmt::format("repeat {} {{\n", to_string(instruction.over));
        append(text, instruction.body, indent + 4);
        text.append(indent, ' ');
        text += "}\n";
    }
}

std::uint64_t count(const std::vector<Instruction>& instructions, OpCode code, const RepeatCounts& counts) {
    std::uint64_t found = 0;
    for (const Instruction& instruction : instructions) {
        found += instruction.code == code ? 1 : 0;
        found += counts.of(instruction.over) * count(instruction.body, code, counts);
    }
    return found;
}

void collect_recomputed(const std::vector<Instruction>& instructions, std::vector<LayerInterval>& blocks) {
    for (const Instruction& instruction : instructions) {
        collect_recomputed(instruction.body, blocks);
        if (instruction.code == OpCode::recompute && std::ranges::find(blocks, instruction.layers) == blocks.end()) {
            blocks.push_back(instruction.layers);
        }
    }
}

std::uint32_t most_stashed(const std::vector<Instruction>& instructions) {
    std::uint32_t most = 0;
    for (const Instruction& instruction : instructions) {
        most =
            std::max({most, most_stashed(instruction.body), instruction.code == OpCode::stash ? instruction.index : 0});
    }
    return most;
}

bool repeats_over(const std::vector<Instruction>& instructions, RepeatOver over) {
    return std::ranges::any_of(instructions, [over](const Instruction& instruction) {
        return (instruction.code == OpCode::repeat && instruction.over == over) || repeats_over(instruction.body, over);
    });
}

bool takes_whole_batches(const std::vector<Instruction>& instructions) {
    return std::ranges::any_of(instructions, [](const Instruction& instruction) {
        const bool inside = instruction.code == OpCode::repeat && instruction.over == RepeatOver::microbatches;
        return instruction.code == OpCode::load || instruction.code == OpCode::receive ||
               (!inside && takes_whole_batches(instruction.body));
    });
}

}  // namespace

std::string_view to_string(OpCode code) {
    return op_names[static_cast<std::size_t>(code)];
}

std::string_view to_string(RepeatOver over) {
    constexpr std::array<std::string_view, repeat_over_count> names = {"epochs", "batches", "clients", "microbatches"};
    return names[static_cast<std::size_t>(over)];
}

std::string_view to_string(Payload payload) {
    constexpr std::array<std::string_view, 4> names = {"activations", "gradients", "labels", "parameters"};
    return names[static_cast<std::size_t>(payload)];
}

Instruction make_forward(LayerInterval layers) {
    return {.code = OpCode::forward, .layers = layers};
}
Instruction make_backward(LayerInterval layers) {
    return {.code = OpCode::backward, .layers = layers};
}
Instruction make_step(LayerInterval layers) {
    return {.code = OpCode::step, .layers = layers};
}
Instruction make_recompute(LayerInterval layers) {
    return {.code = OpCode::recompute, .layers = layers};
}
Instruction make_stash(std::uint32_t passes) {
    return {.code = OpCode::stash, .index = passes};
}
Instruction make_repeat(RepeatOver over, std::vector<Instruction> body) {
    return {.code = OpCode::repeat, .over = over, .body = std::move(body)};
}

std::string to_text(const Program& program) {
    std::string text;
    append(text, program.instructions, 0);
    return text;
}

std::vector<LayerInterval> recomputed_blocks(const Program& program) {
    std::vector<LayerInterval> blocks;
    collect_recomputed(program.instructions, blocks);
    std::ranges::sort(blocks, {}, &LayerInterval::begin);
    return blocks;
}

bool works_for_clients(const Program& program) {
    return repeats_over(program.instructions, RepeatOver::clients);
}

std::uint32_t stashed_passes(const Program& program) {
    return most_stashed(program.instructions);
}

bool works_by_microbatch(const Program& program) {
    return !takes_whole_batches(program.instructions);
}

std::uint64_t count_instructions(const Program& program, OpCode code) {
    return count(program.instructions, code, RepeatCounts{});
}

std::uint64_t count_executions(const Program& program, OpCode code, const RepeatCounts& counts) {
    return count(program.instructions, code, counts);
}

}  // namespace causeway
