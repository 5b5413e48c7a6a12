// Model files that a person names: read, and as bytes in either format.
#pragma once

#include <filesystem>

#include "common/digest.h"
#include "model/checkpoint.h"

namespace causeway::cli {

struct ModelFile {
    SavedModel model;
    Digest digest;          // of the model, whatever else the file says
    std::string normalise;  // "MEANS DEVIATIONS" of the run's examples (configs/statistics.h); empty: none
};

/// A safetensors file that carries its architecture. errors  not_found; corrupt, invalid: the file's name and why
[[nodiscard]] Result<ModelFile> read_model_file(const std::filesystem::path& path);

/// A safetensors file with `normalise` in its metadata.
[[nodiscard]] Bytes model_bytes(const SavedModel& model, const std::string& normalise);

/// The model's tensors by name in an NPZ, and those of `normalise` as `normalise.mean` and `normalise.deviation`.
///
/// errors  unsupported `too_large_for_npz`
[[nodiscard]] Result<Bytes> npz_bytes(const SavedModel& model, const std::string& normalise);

}  // namespace causeway::cli
