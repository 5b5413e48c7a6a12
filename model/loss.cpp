// The texts of losses, and which kernel computes each.
//
// Plain cross-entropy has a kernel of its own, so that the bits of models without options stay what they were.
#include "model/loss.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

struct Name {
    std::string_view text;
    LossKind kind;
};
constexpr std::array known_losses = {Name{"cross-entropy", LossKind::cross_entropy},
                                     Name{"mean-squared-error", LossKind::mean_squared_error},
                                     Name{"binary-cross-entropy", LossKind::binary_cross_entropy}};
constexpr std::size_t max_loss_text = 64 * 1024;  // 4,096 class weights with all their digits
constexpr std::size_t max_class_weights = 4096;
constexpr double max_class_weight = 1e6;

tl::unexpected<Error> bad_loss(std::string message) {
    return fail(ErrorKind::invalid, "bad_loss", std::move(message));
}

std::optional<double> number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) ? std::optional(value)
                                                                                            : std::nullopt;
}

Status read_smoothing(std::string_view text, LossSpec& spec) {
    const auto value = number(text);
    if (!value || *value < 0 || *value >= 1) {
        return bad_loss(fmt::format("smoothing={} is not a share from 0 to below 1", text.substr(0, 40)));
    }
    spec.smoothing = *value + 0.0;  // -0 becomes 0
    return {};
}

Status read_weights(std::string_view text, LossSpec& spec) {
    for (const std::string& word : split_text(text, ',')) {
        const auto value = number(word);
        if (!value || *value < 0 || *value > max_class_weight || spec.weights.size() == max_class_weights) {
            return bad_loss(fmt::format("weights={} are not up to {} numbers from 0 to {}, with commas between them",
                                        text.substr(0, 40), max_class_weights, max_class_weight));
        }
        spec.weights.push_back(static_cast<float>(*value + 0.0));
    }
    return {};
}

Status read_option(std::string_view word, LossSpec& spec) {
    if (spec.kind != LossKind::cross_entropy) {
        return bad_loss(fmt::format("\"{}\": only cross-entropy has options", word.substr(0, 40)));
    }
    if (word.starts_with("smoothing=")) {
        return read_smoothing(word.substr(10), spec);
    }
    if (word.starts_with("weights=") && spec.weights.empty()) {
        return read_weights(word.substr(8), spec);
    }
    return bad_loss(
        fmt::format("\"{}\" is not an option of cross-entropy: smoothing=SHARE, weights=W,W,... (one a "
                    "class)",
                    word.substr(0, 40)));
}

/// Whether the plain kernel will not do.
bool weighted(const LossSpec& spec) {
    return spec.smoothing > 0 || !spec.weights.empty();
}

cw_op op_of(const LossSpec& spec, LossPlan::Shape shape, ops::Gradient gradient) {
    switch (spec.kind) {
        case LossKind::mean_squared_error:
            return ops::mean_squared_error(shape.rows, shape.outputs, gradient);
        case LossKind::binary_cross_entropy:
            return ops::binary_cross_entropy(shape.rows, shape.outputs, gradient);
        case LossKind::cross_entropy:
            break;
    }
    return weighted(spec) ? ops::weighted_cross_entropy(shape.rows, shape.outputs, gradient)
                          : ops::softmax_cross_entropy(shape.rows, shape.outputs, gradient);
}

}  // namespace

std::vector<std::string> loss_names() {
    std::vector<std::string> list;
    for (const Name& name : known_losses) {
        list.emplace_back(name.text);
    }
    return list;
}

Result<LossSpec> parse_loss(std::string_view text) {
    if (text.size() > max_loss_text) {
        return bad_loss(fmt::format("a loss is at most {} bytes long", max_loss_text));
    }
    const auto words = split_text(trim(text), ' ');
    const std::string_view first = words.empty() ? std::string_view{} : std::string_view(words.front());
    const auto known = std::ranges::find(known_losses, first, &Name::text);
    if (known == known_losses.end()) {
        const auto all = loss_names();
        return bad_loss(fmt::format("there is no loss \"{}\"; {}", first.substr(0, 40), name_hint(first, all)));
    }
    LossSpec spec{.kind = known->kind, .smoothing = 0, .weights = {}};
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (!words[i].empty()) {
            TRY(read_option(words[i], spec));
        }
    }
    return spec;
}

std::string to_text(const LossSpec& spec) {
    std::string text(std::ranges::find(known_losses, spec.kind, &Name::kind)->text);
    if (spec.smoothing > 0) {
        text += fmt::format(" smoothing={}", spec.smoothing);
    }
    for (std::size_t i = 0; i < spec.weights.size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? " weights=" : ",", spec.weights[i]);
    }
    return text;
}

Result<LossPlan> LossPlan::prepare(PlanCache& plans, const LossSpec& spec, Shape shape, ops::Gradient gradient) {
    LossPlan made;
    made.spec_ = spec;
    made.gradient_ = gradient;
    TRY_ASSIGN(made.plan_, plans.get(op_of(spec, shape, gradient)));
    return made;
}

Status LossPlan::run(const Operands& o, double divisor) {
    std::array<Operand, 6> list{o.scores, o.targets, o.loss, o.correct, o.gradient, o.gradient};
    std::size_t count = 4;
    std::array<double, 2> scalars{divisor, spec_.smoothing};
    std::size_t scalar_count = 1;
    if (spec_.kind == LossKind::mean_squared_error) {
        list[3] = o.gradient;
        count = 3;
    } else if (spec_.kind == LossKind::cross_entropy && weighted(spec_)) {
        list = {o.scores, o.targets, o.weights, o.loss, o.correct, o.gradient};
        count = 5;
        scalar_count = 2;
    }
    count += gradient_ == ops::Gradient::present ? 1 : 0;
    return plan_->run(std::span(list).first(count), std::span(scalars).first(scalar_count));
}

}  // namespace causeway
