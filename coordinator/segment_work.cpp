// See segment_work.h.
#include "coordinator/segment_work.h"

#include <fmt/format.h>

#include "configs/split_plan.h"
#include "configs/workload.h"
#include "coordinator/limits.h"
#include "split/flow.h"
#include "split/segment_file.h"

namespace causeway {
namespace {

Update update_of(const RoundInput& input, const ModelState& whole, const Segment* part) {
    const auto wanted = part == nullptr ? input.expected()
                                        : ArenaRanges{part->ranges(ArenaKind::trainable),
                                                      part->ranges(ArenaKind::buffers), RangeSet{}};
    return make_update(input.chain().table(), wanted, values_of(whole));
}

Result<SegmentState> decode(const SegmentRules& rules, const RoundInput& input, const Segment& segment, ByteView file) {
    return decode_segment(segment, rules.optimizer, input.chain().layer_count(), file);
}

}  // namespace

const Segment* SegmentRules::find(const std::string& layers) const {
    return to_text(client.layers()) == layers ? &client : to_text(host.layers()) == layers ? &host : nullptr;
}

Result<std::optional<SegmentRules>> segment_rules_of(const Experiment& experiment, const Chain& chain) {
    TRY_ASSIGN(const auto plan, split_plan_of(experiment, chain));
    if (!plan) {
        return std::optional<SegmentRules>{};
    }
    TRY_ASSIGN(const auto client, stage_program(*plan, chain, 0));
    TRY_ASSIGN(const auto host, stage_program(*plan, chain, 1));
    TRY_ASSIGN(auto client_segment, Segment::make(chain, layers_of(client)));
    TRY_ASSIGN(auto host_segment, Segment::make(chain, layers_of(host)));
    TRY_ASSIGN(auto optimizer, optimizer_of(experiment));
    return std::optional(SegmentRules{std::move(client_segment), std::move(host_segment), std::move(optimizer)});
}

std::array<Bytes, 2> cut_segments(const SegmentRules& rules, const ModelState& start) {
    const auto file = [&](const Segment& segment) { return encode_segment(segment, {segment.cut(start), {}}); };
    return {file(rules.client), file(rules.host)};
}

std::optional<Refusal> check_segment(const SegmentRules& rules, const RoundInput& input, const std::string& layers,
                                     const HeldUpdate& offered, ByteView file) {
    const auto* segment = rules.find(layers);
    if (segment == nullptr || offered.round != input.round()) {
        return Refusal{"wrong_round", "a segment of other layers or of another round than the turn's", "", 0};
    }
    const auto state = decode(rules, input, *segment, file);
    if (!state) {
        return Refusal{state.error().code, state.error().message, "", 0};
    }
    ModelState whole = input.start();
    segment->paste(state->model, whole);
    const FirewallRules firewall{.expected = {segment->ranges(ArenaKind::trainable),
                                              segment->ranges(ArenaKind::buffers), RangeSet{}},
                                 .cohort = input.rules().cohort};
    return check_update(input.chain().table(), firewall, values_of(input.start()), update_of(input, whole, segment),
                        offered.weight);
}

tl::expected<CheckedUpdate, Refusal> group_update(const SegmentRules& rules, const RoundInput& input,
                                                  std::size_t group, const std::array<Bytes, 2>& files,
                                                  std::uint64_t examples) {
    if (examples >= static_cast<std::uint64_t>(limits::weight_bound)) {
        return tl::unexpected(Refusal{"bad_weight", fmt::format("a group of {} examples", examples), "", 0});
    }
    ModelState whole = input.start();
    for (std::size_t stage = 0; stage < files.size(); ++stage) {
        const auto& segment = stage == 0 ? rules.client : rules.host;
        const auto state = decode(rules, input, segment, files[stage]);
        if (!state) {
            return tl::unexpected(Refusal{state.error().code, state.error().message, "", 0});
        }
        segment.paste(state->model, whole);
    }
    auto update = update_of(input, whole, nullptr);
    return CheckedUpdate{.round = input.round(),
                         .node = fmt::format("group {}", group),
                         .digest = sha256(files[1]),
                         .weight = static_cast<std::uint32_t>(examples),
                         .update = std::move(update)};
}

}  // namespace causeway
