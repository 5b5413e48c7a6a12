// What travels as a model, an update or a program: a coordinator reads updates of nodes that it does not trust, a node
// programs and models of a coordinator that it does not trust either.
// Thread: one.
#include <algorithm>
#include <cmath>

#include "aggregation/column_sums.h"
#include "compression/update_format.h"
#include "model/checkpoint.h"
#include "model/initialise.h"
#include "model/optimizer.h"
#include "model/program.h"
#include "split/flow.h"
#include "split/segment_file.h"
#include "tests/fuzz/targets.h"

namespace causeway {
namespace {

const Chain& chain() {
    static const Chain made = *Chain::parse({"flatten", "dense 3", "relu", "dense 2"}, {2, 1}, "cross-entropy");
    return made;
}

void run_safetensors(ByteView input) {
    require_named(from_safetensors(chain(), input));
    require_named(list_safetensors(input));
    const auto saved = load_safetensors(input);
    require_named(saved);
    if (saved) {
        REQUIRE_FUZZ(load_safetensors(to_safetensors(saved->chain, saved->state)).has_value());
    }
}
std::vector<Bytes> safetensors_seeds() {
    return {to_safetensors(chain(), initial_model(chain(), 9))};
}

Update some_update() {
    const auto state = initial_model(chain(), 5);
    return make_update(chain().table(), {RangeSet::all(state.trainable.values.size()), {}, {}},
                       {state.trainable.values, {}, {}});
}

void run_update(ByteView input) {
    static const Codec codec = *parse_codec("dense");
    const auto update = decode_update(codec, input, decode_limits(chain().table()));
    require_named(update);
    if (update) {
        const auto bytes = encode_update(codec, *update);
        REQUIRE_FUZZ(decode_update(codec, ByteView(bytes), decode_limits(chain().table())).has_value());
    }
}
std::vector<Bytes> update_seeds() {
    return {encode_update(*parse_codec("dense"), some_update())};
}

void run_program(ByteView input) {
    const auto program = parse_program(as_text(input));
    require_named(program);
    if (program) {
        const auto again = parse_program(to_text(*program));
        REQUIRE_FUZZ(again.has_value() && *again == *program);
        require_named(examine_program(*program, chain()));
    }
}
std::vector<Bytes> program_seeds() {
    return {to_bytes(to_text(*compile_flow("local-epochs", {.chain = chain(), .cell = whole_chain(chain())})))};
}

void run_architecture(ByteView input) {
    const auto read = Chain::from_architecture(as_text(input));
    require_named(read);
    require_named(parse_optimizer(as_text(input)));
    require_named(parse_codec(as_text(input)));
}
std::vector<Bytes> architecture_seeds() {
    return {to_bytes(chain().architecture()), to_bytes("sgd learning_rate=0.05 momentum=0.9"),
            to_bytes("input 8x8x1\nflatten\ndense 64\nrelu\ndense 10\nloss cross-entropy"), to_bytes("dense")};
}

/// Of the first layers: a segment and, with or without it, an optimizer's state.
const Segment& part() {
    static const Segment made = *Segment::make(chain(), {{0, 2}});
    return made;
}
const OptimizerSpec& momentum() {
    static const OptimizerSpec spec = *parse_optimizer("sgd learning_rate=0.05 momentum=0.9");
    return spec;
}
void run_segment(ByteView input) {
    const auto read = decode_segment(part(), momentum(), chain().layer_count(), input);
    require_named(read);
    if (read) {
        REQUIRE_FUZZ(std::ranges::equal(encode_segment(part(), *read), input));
    }
}
std::vector<Bytes> segment_seeds() {
    SegmentState state{part().cut(initial_model(chain(), 5)), {}};
    const auto fresh = encode_segment(part(), state);
    state.optimizer =
        OptimizerState::fresh(momentum(), chain().layer_count(), part().arena_size(ArenaKind::trainable));
    return {fresh, encode_segment(part(), state)};
}

/// Whatever sums say, they merge as often as they may, numbers come of them, and their bytes are read again.
void run_column_sums(ByteView input) {
    constexpr std::uint32_t members = 4;
    const auto sums = ColumnSums::from_partial(input, 3, members);
    require_named(sums);
    if (sums) {
        ColumnSums all(3, members);
        for (std::uint32_t i = 0; i < members; ++i) {
            all.merge(*sums);
        }
        for (const auto& column : all.statistics()) {
            REQUIRE_FUZZ(std::isfinite(column.mean) && column.deviation > least_deviation);
        }
        REQUIRE_FUZZ(ColumnSums::from_partial(ColumnSums(*sums).partial(), 3, members).has_value());
    }
}
std::vector<Bytes> column_sums_seeds() {
    ColumnSums one(3, 4);
    ColumnSums some(3, 4);
    const std::vector<float> values{1, -2, 3e10f, 0.5f, 0, 1e-20f};
    REQUIRE_FUZZ(one.add(std::span(values).first(3)).has_value() && some.add(values).has_value());
    return {one.partial(), some.partial()};
}

constexpr FuzzTarget model_targets_table[] = {{"safetensors", run_safetensors, safetensors_seeds, 3000},
                                              {"update", run_update, update_seeds, 5000},
                                              {"program", run_program, program_seeds, 3000},
                                              {"architecture", run_architecture, architecture_seeds, 3000},
                                              {"segment", run_segment, segment_seeds, 5000},
                                              {"column_sums", run_column_sums, column_sums_seeds, 5000}};

}  // namespace

std::span<const FuzzTarget> model_targets() {
    return model_targets_table;
}

}  // namespace causeway
