// `model.init_from`: starting from a model that somebody has, instead of from the seed.
//
// The experiment file names a model, as it names a dataset; the coordinator's owner maps the name to a safetensors file
// with `--model NAME=PATH`. When an experiment is accepted, the name is pinned to the file's SHA-256 and that is what
// is stored ("digits-2025@9f86..."): a file that has changed by the time of the start, or by the time somebody repeats
// the experiment, is noticed. The start model is the canonical form of its tensors, so any writer's file will do.
// Pure, any thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/digest.h"
#include "configs/experiment.h"
#include "model/checkpoint.h"

namespace causeway {

struct InitFrom {
    std::string name;
    std::optional<Digest> digest;  // of the file; empty until it is pinned
};

/// "NAME" or "NAME@SHA256". errors   invalid `bad_configuration`
[[nodiscard]] Result<InitFrom> parse_init_from(std::string_view text);

/// Empty when the experiment starts from its seed ("none").
[[nodiscard]] std::optional<InitFrom> init_from_of(const Experiment& experiment);

/// A file that can be named: what is known of it before it is needed.
struct NamedModel {
    Digest digest;
    SafetensorsListing listing;
};
using NamedModels = std::map<std::string, NamedModel>;

/// errors   corrupt `bad_safetensors`
[[nodiscard]] Result<NamedModel> describe_named_model(ByteView file);

/// Pins `init_from` to the model known under its name, when that fits the experiment's layers.
///
/// errors   not_found `unknown_model`, with the names there are; corrupt `digest_mismatch`: it is pinned to another
///          file; invalid `model_mismatch`: names or shapes differ, one line each with the place of `init_from`
Status pin_initial_model(Experiment& experiment, const NamedModels& known);

/// The canonical bytes of an initial model from its file's.
///
/// errors   io `model_changed`: not the file that was pinned; corrupt as model/checkpoint.h
[[nodiscard]] Result<Bytes> canonical_initial_model(const Chain& chain, const InitFrom& from, ByteView file);

}  // namespace causeway
