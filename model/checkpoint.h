// Checkpoints: a model as safetensors bytes, which any Python reader opens, and by whose SHA-256 a model is named.
//
// Layout: u64 header length (little-endian); a JSON object with sorted keys and no blanks, `"__metadata__":
// {"architecture": ...}` and per tensor `{"dtype":"F32","shape":[..],"data_offsets":[begin,end]}`; then the tensors in
// chain order, f32 little-endian, without padding. No ids, names, times or topology: equal models have equal bytes.
// `sha256sum model.safetensors` is therefore the model's digest. Source: the safetensors format description.
#pragma once

#include "common/bytes.h"
#include "common/digest.h"
#include "common/json.h"
#include "model/arena.h"
#include "model/chain.h"

namespace causeway {

/// `more`: texts about the run for the file's metadata, as exported files have them; without any the bytes are the
/// model's own, by which it is named.
///
/// cost     writes 4 bytes an element and about 100 a tensor
Bytes to_safetensors(const Chain& chain, const ModelState& state, const Json& more = {});

/// SHA-256 of to_safetensors.
Digest model_digest(const Chain& chain, const ModelState& state);

/// Total: any bytes. Also accepts what other writers make of the same tensors (another order, a padded header).
///
/// errors   corrupt `bad_safetensors`: not a well-formed file; `model_mismatch`: tensors missing, unknown, of
///          another shape than the chain's or of a dtype other than F32, F16, BF16 and F64, all named (the first eight)
/// cost     allocates no more than the chain's arenas, whatever the header claims
Result<ModelState> from_safetensors(const Chain& chain, ByteView bytes);

/// What a file says that it holds, without the values.
struct SafetensorsListing {
    Json header;                   // tensors by name, and the metadata
    std::uint64_t data_bytes = 0;  // after the header, covered by the tensors exactly once
};

/// errors   corrupt `bad_safetensors`
Result<SafetensorsListing> list_safetensors(ByteView bytes);

/// Every way in which a file's tensors are not the chain's, one sentence each; empty when it can be read as one.
[[nodiscard]] std::vector<std::string> find_mismatches(const Chain& chain, const SafetensorsListing& listing);

struct SavedModel {
    Chain chain;
    ModelState state;
    Json metadata;  // what the file says besides its tensors
};

/// Reads a file by the architecture that it carries.
///
/// errors   corrupt as above, or without an architecture; invalid `bad_architecture`
Result<SavedModel> load_safetensors(ByteView bytes);

}  // namespace causeway
