// Glue between the wire's words, the firewall and the sum. Refusals say what was expected, for the person at the
// client. Thread: RoundInput any, RoundWork one worker at a time; no locks.
#include "coordinator/round_work.h"

#include <cmath>

#include "model/checkpoint.h"

namespace causeway {
namespace {

constexpr std::array kinds{ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen};

// In double and in order of elements: it is shown and logged, so it too must be the same in every run.
double distance(std::span<const float> a, std::span<const float> b) {
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        squares += difference * difference;
    }
    return std::sqrt(squares);
}

std::string expectation(const RoundInput& input) {
    return "expected an update of round " + std::to_string(input.round()) + ", codec " + input.rules().codec.text +
           ", with the model's " + std::to_string(input.chain().table().tensors.size()) + " tensors";
}

}  // namespace

RoundInput::RoundInput(Chain chain, RoundRules rules, std::uint32_t round, ModelState start, Digest start_digest)
    : chain_(std::move(chain)),
      rules_(std::move(rules)),
      round_(round),
      start_(std::move(start)),
      start_digest_(start_digest.empty() ? model_digest(chain_, start_) : start_digest),
      firewall_{exchanged_ranges(chain_.table()), rules_.cohort, rules_.norm_bound, rules_.codec.fidelity},
      limits_(decode_limits(chain_.table())) {}

RoundInput::RoundInput(Chain chain, RoundRules rules, const StatisticsRules& statistics)
    : chain_(std::move(chain)),
      rules_(std::move(rules)),
      round_(0),
      limits_(decode_limits(chain_.table())),
      statistics_(statistics) {}

/// The firewall of statistics: the bounds of the exact sum, and as many values as the examples that were offered have.
tl::expected<CheckedUpdate, Refusal> RoundInput::check_sums(const std::string& node, const HeldUpdate& offered,
                                                            ByteView bytes) const {
    auto sums = ColumnSums::from_partial(bytes, statistics_->columns, statistics_->members);
    if (!sums) {
        return tl::unexpected(Refusal{sums.error().code,
                                      sums.error().message + "; expected the sums of " +
                                          std::to_string(statistics_->columns) + " columns",
                                      "", 0});
    }
    if (offered.weight < 0 || sums->count() != static_cast<std::uint64_t>(offered.weight) * statistics_->values) {
        return tl::unexpected(Refusal{"bad_weight",
                                      "the sums are of " + std::to_string(sums->count()) + " values a column, and " +
                                          std::to_string(offered.weight) + " examples have " +
                                          std::to_string(statistics_->values) + " each",
                                      "", 0});
    }
    return CheckedUpdate{round_, node, offered.digest, static_cast<std::uint32_t>(offered.weight), {},
                         *std::move(sums)};
}

tl::expected<CheckedUpdate, Refusal> RoundInput::check(const std::string& node, const HeldUpdate& offered,
                                                       const SharedBytes& bytes) const {
    if (offered.round != round_) {
        return tl::unexpected(
            Refusal{"wrong_round",
                    "this is an update of round " + std::to_string(offered.round) + "; " + expectation(*this), "", 0});
    }
    // Updates hold theta_local, so one from another start would pass every other check and still be wrong.
    if (offered.start_model != start_digest_) {
        return tl::unexpected(Refusal{"wrong_model",
                                      "the update was trained from model " + offered.start_model.short_hex() +
                                          ", the round starts from " + start_digest_.short_hex(),
                                      "", 0});
    }
    if (statistics_) {
        return check_sums(node, offered, bytes.view());
    }
    auto update = decode_update(rules_.codec, bytes, limits_);
    if (!update) {
        return tl::unexpected(Refusal{update.error().code, update.error().message + "; " + expectation(*this), "", 0});
    }
    if (auto refusal = check_update(chain_.table(), firewall_, values_of(start_), *update, offered.weight)) {
        return tl::unexpected(*std::move(refusal));
    }
    return CheckedUpdate{round_, node, offered.digest, static_cast<std::uint32_t>(offered.weight), *std::move(update)};
}

Status RoundWork::open_round(std::shared_ptr<const RoundInput> input) {
    const auto& rules = input->rules();
    if (rules.aggregator.needs != AggregatorNeeds::running_sum) {
        return fail(
            ErrorKind::unsupported, "needs_all_updates",
            "the aggregator " + rules.aggregator.text + " needs all updates at once; this build keeps sums only");
    }
    finished_.reset();
    counted_.clear();
    sum_.reset();
    columns_.reset();
    examples_ = 0;
    input_ = std::move(input);
    if (const auto& statistics = input_->statistics()) {
        columns_.emplace(statistics->columns, statistics->members);
        return {};
    }
    sum_ = rules.aggregator.begin({input_->expected(), values_of(input_->start()), rules.codec.fidelity, {}});
    return {};
}

std::optional<Refusal> RoundWork::add(CheckedUpdate update) {
    if ((!sum_ && !columns_) || update.round != input_->round()) {
        return Refusal{"wrong_round",
                       "the update of round " + std::to_string(update.round) + " comes when that round is not open", "",
                       0};
    }
    const auto [known, is_new] = counted_.emplace(update.node, update.digest);
    if (!is_new) {
        return known->second == update.digest
                   ? std::nullopt
                   : std::optional(
                         Refusal{"duplicate", "another update of " + update.node + " is in this round's sum", "", 0});
    }
    if (columns_) {
        columns_->merge(*update.sums);
        examples_ += update.weight;
        return std::nullopt;
    }
    sum_->add(update.update, update.weight);
    return std::nullopt;
}

std::optional<Refusal> RoundWork::absorb(const std::string& node, const HeldUpdate& offered, ByteView bytes) {
    if (!input_) {
        return Refusal{"wrong_round", "no round is open", "", 0};
    }
    auto checked = input_->check(node, offered, {std::shared_ptr<const void>(), bytes});
    return checked ? add(*std::move(checked)) : std::optional(std::move(checked).error());
}

/// The sums stay until the model is made: a file that cannot be read now may be readable later.
Result<const FinishedRound*> RoundWork::finish_statistics(const MakeFirstModel& first_model) {
    ASSERT(first_model);
    if (examples_ == 0) {
        return fail(ErrorKind::invalid, "zero_total_weight", "no member has sent sums of any example");
    }
    FinishedRound finished;
    TRY_ASSIGN(finished.file, first_model());
    finished.digest = sha256(finished.file);
    finished.counted.assign(counted_.begin(), counted_.end());
    finished.normalise = to_text(columns_->statistics());
    finished.examples = examples_;
    finished_ = std::move(finished);
    columns_.reset();
    return &*finished_;
}

Result<const FinishedRound*> RoundWork::finish(const MakeFirstModel& first_model) {
    if (finished_) {
        return &*finished_;
    }
    if (columns_) {
        return finish_statistics(first_model);
    }
    if (!sum_) {
        return fail(ErrorKind::not_found, "no_round", "no round of this experiment is open");
    }
    TRY_ASSIGN(auto result, sum_->finish(nullptr));
    sum_.reset();  // the limbs go before the file's bytes come
    finished_ = make_finished(std::move(result));
    return &*finished_;
}

FinishedRound RoundWork::make_finished(AggregationResult result) const {
    const auto& start = input_->start();
    FinishedRound finished;
    finished.round = input_->round();
    for (const auto kind : kinds) {
        auto& values = result.arenas[static_cast<std::size_t>(kind)];
        auto& arena = finished.model.arena(kind);
        arena.values = values.empty() ? start.arena(kind).values : std::move(values);
        arena.version = start.arena(kind).version + 1;
    }
    finished.file = to_safetensors(input_->chain(), finished.model);
    finished.digest = sha256(finished.file);
    finished.update_norm = distance(finished.model.trainable.values, start.trainable.values);
    finished.counted.assign(counted_.begin(), counted_.end());
    return finished;
}

}  // namespace causeway
