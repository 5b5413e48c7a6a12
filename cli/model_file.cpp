// Between model/, which knows tensors, and data/, which knows numpy's formats.
#include "cli/model_file.h"

#include "common/file.h"
#include "data/npz.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t largest_model = std::uint64_t{16} << 30;

}  // namespace

Result<ModelFile> read_model_file(const std::filesystem::path& path) {
    TRY_ASSIGN(const auto bytes, read_file(path, largest_model));
    auto model = load_safetensors(bytes);
    if (!model) {
        return fail(with_context(model.error(), path.string()));
    }
    return ModelFile{*std::move(model), sha256(bytes)};
}

Status write_npz_file(const SavedModel& model, const std::filesystem::path& path) {
    std::vector<NamedArray> arrays;
    for (const auto& tensor : model.chain.table().tensors) {
        arrays.push_back({tensor.name, tensor.shape, model.state.arena(tensor.arena).view(tensor)});
    }
    TRY_ASSIGN(const auto bytes, encode_npz(arrays));
    return write_file_durably(path, bytes);
}

}  // namespace causeway::cli
