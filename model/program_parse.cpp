// The parser of program texts. They come from a peer, so it is total: tokens by hand, every number bounded, recursion
// only as deep as repeats may nest, and each error names the line it is in.
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "common/text.h"
#include "model/program.h"

namespace causeway {
namespace {

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9');
}
bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// Words (letters, digits, _) and single characters. An empty token is the end of the text.
class Tokens {
public:
    explicit Tokens(std::string_view text) : text_(text) { advance(); }

    [[nodiscard]] std::string_view peek() const { return token_; }
    [[nodiscard]] std::size_t line() const { return line_; }
    std::string_view next() {
        const auto token = token_;
        advance();
        return token;
    }

private:
    void advance() {
        while (place_ < text_.size() && is_blank(text_[place_])) {
            line_ += text_[place_++] == '\n' ? 1 : 0;
        }
        std::size_t end = place_;
        while (end < text_.size() && is_word(text_[end])) {
            ++end;
        }
        if (end == place_ && end < text_.size()) {
            ++end;
        }
        token_ = text_.substr(place_, end - place_);
        place_ = end;
    }

    std::string_view text_;
    std::string_view token_;
    std::size_t place_ = 0;
    std::size_t line_ = 1;
};

/// A token as an error message may show it: short, printable.
std::string shown(std::string_view token) {
    if (token.empty()) {
        return "the end";
    }
    std::string text;
    for (const char c : token.substr(0, 24)) {
        text += c > ' ' && c < 127 ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return "'" + text + "'";
}

template <class Enum>
std::optional<Enum> named(std::string_view word, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (to_string(static_cast<Enum>(i)) == word) {
            return static_cast<Enum>(i);
        }
    }
    return std::nullopt;
}

class ProgramParser {
public:
    explicit ProgramParser(std::string_view text) : tokens_(text) {}

    Result<Program> program() {
        TRY_ASSIGN(auto instructions, block(0));
        if (!tokens_.peek().empty()) {
            return wrong("an instruction");
        }
        return Program{std::move(instructions)};
    }

private:
    tl::unexpected<Error> wrong(std::string_view expected) {
        return fail(
            ErrorKind::invalid, "program_syntax",
            fmt::format("program line {}: expected {}, found {}", tokens_.line(), expected, shown(tokens_.peek())));
    }
    tl::unexpected<Error> over_limit(std::string_view what, std::size_t limit) {
        return fail(ErrorKind::invalid, "program_limit",
                    fmt::format("program line {}: more than {} {}", tokens_.line(), limit, what));
    }

    Result<std::vector<Instruction>> block(int depth) {
        std::vector<Instruction> instructions;
        while (!tokens_.peek().empty() && tokens_.peek() != "}") {
            TRY_ASSIGN(auto instruction, one(depth));
            instructions.push_back(std::move(instruction));
        }
        return instructions;
    }

    Result<Instruction> one(int depth) {
        const auto code = named<OpCode>(tokens_.peek(), op_code_count);
        if (!code) {
            return wrong(expected_instruction());
        }
        if (++instructions_ > max_program_instructions) {
            return over_limit("instructions", max_program_instructions);
        }
        tokens_.next();
        Instruction instruction{.code = *code};
        TRY(*code == OpCode::repeat ? repeat(instruction, depth) : operands(instruction));
        return instruction;
    }

    std::string expected_instruction() {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < op_code_count; ++i) {
            names.emplace_back(to_string(static_cast<OpCode>(i)));
        }
        const auto nearest = nearest_name(tokens_.peek().substr(0, 24), names);
        return nearest ? "an instruction such as '" + *nearest + "'" : "an instruction";
    }

    Status repeat(Instruction& instruction, int depth) {
        if (depth == max_program_depth) {
            return over_limit("repeats inside each other", max_program_depth);
        }
        const auto over = named<RepeatOver>(tokens_.peek(), repeat_over_count);
        if (!over) {
            return wrong("epochs, batches, clients or microbatches");
        }
        tokens_.next();
        instruction.over = *over;
        TRY(symbol("{"));
        TRY_ASSIGN(instruction.body, block(depth + 1));
        return symbol("}");
    }

    Status operands(Instruction& instruction) {
        switch (instruction.code) {
            case OpCode::forward:
            case OpCode::backward:
            case OpCode::recompute:
                return layers(instruction);
            case OpCode::step:
                return tokens_.peek() == "[" ? layers(instruction) : ranges(instruction);
            case OpCode::send:
            case OpCode::receive:
                return transfer(instruction);
            case OpCode::gradient_final:
                return number(instruction.index, UINT32_MAX);
            case OpCode::deadline:
                return milliseconds(instruction);
            case OpCode::wait:
                return number(instruction.index, max_program_slots - 1);
            case OpCode::stash:
                return begins_number(tokens_.peek()) ? passes(instruction) : Status{};
            case OpCode::snapshot:
                if (!begins_number(tokens_.peek())) {
                    return {};  // of the whole run
                }
                [[fallthrough]];
            case OpCode::sync:
                TRY(number(instruction.index, max_program_slots - 1));
                return ranges(instruction);
            default:
                return {};
        }
    }

    static bool begins_number(std::string_view token) {
        return !token.empty() && token[0] >= '0' && token[0] <= '9';
    }

    Status passes(Instruction& instruction) {
        TRY(number(instruction.index, max_stashed_passes));
        return instruction.index > 0 ? Status{}
                                     : fail(ErrorKind::invalid, "program_syntax",
                                            fmt::format("program line {}: a stash of 0 passes", tokens_.line()));
    }

    Status milliseconds(Instruction& instruction) {
        TRY(number(instruction.index, UINT32_MAX));
        return instruction.index > 0 ? Status{}
                                     : fail(ErrorKind::invalid, "program_syntax",
                                            fmt::format("program line {}: a deadline of 0 ms", tokens_.line()));
    }

    Status transfer(Instruction& instruction) {
        const auto payload = named<Payload>(tokens_.peek(), 4);
        if (!payload) {
            return wrong("activations, gradients, labels or parameters");
        }
        tokens_.next();
        instruction.payload = *payload;
        TRY(symbol(instruction.code == OpCode::send ? "to" : "from"));
        return number(instruction.index, UINT32_MAX);
    }

    Status symbol(std::string_view expected) {
        if (tokens_.peek() != expected) {
            return wrong(fmt::format("'{}'", expected));
        }
        tokens_.next();
        return {};
    }

    template <class Number>
    Status number(Number& value, std::uint64_t limit) {
        const auto token = tokens_.peek();
        std::uint64_t parsed = 0;
        const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), parsed);
        if (token.empty() || error != std::errc{} || end != token.data() + token.size() || parsed > limit) {
            return wrong(fmt::format("a number up to {}", limit));
        }
        tokens_.next();
        value = static_cast<Number>(parsed);
        return {};
    }

    /// [a, b)
    template <class Number>
    Status interval(Number& begin, Number& end, std::uint64_t limit) {
        TRY(symbol("["));
        TRY(number(begin, limit));
        TRY(symbol(","));
        TRY(number(end, limit));
        TRY(symbol(")"));
        if (begin >= end) {
            return fail(ErrorKind::invalid, "program_syntax",
                        fmt::format("program line {}: [{}, {}) is empty", tokens_.line(), begin, end));
        }
        return {};
    }

    Status layers(Instruction& instruction) {
        return interval(instruction.layers.begin, instruction.layers.end, UINT32_MAX);
    }

    Status ranges(Instruction& instruction) {
        const auto arena = named<ArenaKind>(tokens_.peek(), 3);
        if (!arena) {
            return wrong("trainable, buffers or frozen");
        }
        tokens_.next();
        instruction.arena = *arena;
        std::vector<Range> ranges;
        do {
            if (++ranges_ > max_program_ranges) {
                return over_limit("ranges", max_program_ranges);
            }
            Range range;
            TRY(interval(range.begin, range.end, INT64_MAX));
            ranges.push_back(range);
        } while (tokens_.peek() == "[");
        const auto line = tokens_.line();
        auto set = RangeSet::make(std::move(ranges), INT64_MAX);
        if (!set) {
            return fail(with_context(std::move(set).error(), fmt::format("program line {}", line)));
        }
        instruction.ranges = *std::move(set);
        return {};
    }

    Tokens tokens_;
    std::size_t instructions_ = 0;
    std::size_t ranges_ = 0;
};

}  // namespace

Result<Program> parse_program(std::string_view text) {
    if (text.size() > max_program_text) {
        return fail(ErrorKind::invalid, "program_limit",
                    fmt::format("the program has {} bytes, more than {}", text.size(), max_program_text));
    }
    return ProgramParser(text).program();
}

}  // namespace causeway
