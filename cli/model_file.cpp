// Between model/, which knows tensors, and data/, which knows numpy's formats.
#include "cli/model_file.h"

#include "common/file.h"
#include "data/augment.h"
#include "data/npz.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t largest_model_file = std::uint64_t{16} << 30;

}  // namespace

Result<ModelFile> read_model_file(const std::filesystem::path& path) {
    TRY_ASSIGN(const auto bytes, read_file(path, largest_model_file));
    auto model = load_safetensors(bytes);
    if (!model) {
        return fail(with_context(model.error(), path.string()));
    }
    const auto digest = model_digest(model->chain, model->state);
    auto normalise = model->metadata["normalise"].text();
    if (const auto step = parse_augment("normalise " + normalise); !step && !normalise.empty()) {
        return fail(ErrorKind::corrupt, "bad_safetensors",
                    path.string() + ": its metadata says of normalise what cannot be read: " + step.error().message);
    }
    return ModelFile{*std::move(model), digest, std::move(normalise)};
}

Bytes model_bytes(const SavedModel& model, const std::string& normalise) {
    return to_safetensors(model.chain, model.state, Json::object().set("normalise", normalise));
}

Result<Bytes> npz_bytes(const SavedModel& model, const std::string& normalise) {
    std::vector<NamedArray> arrays;
    std::vector<float> means;
    std::vector<float> deviations;
    if (const auto step = parse_augment("normalise " + normalise)) {
        means.assign(step->mean.begin(), step->mean.end());
        deviations.assign(step->deviation.begin(), step->deviation.end());
        const auto count = static_cast<std::int64_t>(means.size());
        arrays.push_back({"normalise.mean", {count}, means});
        arrays.push_back({"normalise.deviation", {count}, deviations});
    }
    for (const auto& tensor : model.chain.table().tensors) {
        arrays.push_back({tensor.name, tensor.shape, model.state.arena(tensor.arena).view(tensor)});
    }
    return encode_npz(arrays);
}

}  // namespace causeway::cli
