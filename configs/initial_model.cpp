// Names, digests and the comparison of two tables of tensors.
#include "configs/initial_model.h"

#include <fmt/format.h>

#include "common/text.h"
#include "configs/checks.h"
#include "configs/workload.h"

namespace causeway {
namespace {

constexpr std::string_view no_file = "none";
constexpr std::size_t most_message_bytes = 48 * 1024;  // a reply's message holds 64 KiB: hundreds of mismatches

std::string known_names(const NamedModels& known) {
    std::vector<std::string> names;
    for (const auto& [name, model] : known) {
        names.push_back(name);
    }
    return names.empty() ? "none" : join(names, ", ");
}

std::string one_line_each(const std::string& start, const std::vector<std::string>& sentences) {
    std::string text;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
        if (text.size() > most_message_bytes) {
            return text + fmt::format("\n{}and {} more", start, sentences.size() - i);
        }
        text += (text.empty() ? "" : "\n") + start + sentences[i];
    }
    return text;
}

std::string place_of_model(const Experiment& experiment) {
    const auto place = experiment.places.find("model.init_from");
    return place == experiment.places.end() ? "model.init_from" : place->second.text();
}

}  // namespace

Result<InitFrom> parse_init_from(std::string_view text) {
    const auto at = text.find('@');
    TRY_ASSIGN(auto name, check_name(std::string(text.substr(0, at))));
    InitFrom from{std::move(name), {}};
    if (at != std::string_view::npos) {
        const auto digest = digest_from_hex(text.substr(at + 1));
        if (!digest) {
            return fail(ErrorKind::invalid, "bad_configuration", "after the @ stands the 64 digits of a SHA-256");
        }
        from.digest = *digest;
    }
    return from;
}

std::optional<InitFrom> init_from_of(const Experiment& experiment) {
    if (experiment.model.init_from == no_file) {
        return std::nullopt;
    }
    const auto from = parse_init_from(experiment.model.init_from);
    return from ? std::optional(*from) : std::nullopt;
}

Result<NamedModel> describe_named_model(ByteView file) {
    TRY_ASSIGN(auto listing, list_safetensors(file));
    return NamedModel{sha256(file), std::move(listing)};
}

Status pin_initial_model(Experiment& experiment, const NamedModels& known) {
    const auto from = init_from_of(experiment);
    if (!from) {
        return {};
    }
    const auto place = place_of_model(experiment);
    const auto found = known.find(from->name);
    if (found == known.end()) {
        return fail(ErrorKind::not_found, "unknown_model",
                    fmt::format("{}: error: the coordinator knows no model \"{}\"; known: {}. Start it with `--model "
                                "{}=FILE.safetensors`",
                                place, from->name, known_names(known), from->name));
    }
    const auto& [digest, listing] = found->second;
    if (from->digest && *from->digest != digest) {
        return fail(ErrorKind::corrupt, "digest_mismatch",
                    fmt::format("{}: error: the model \"{}\" is {} here, not {}: it is another file than the one named",
                                place, from->name, digest.hex(), from->digest->hex()));
    }
    TRY_ASSIGN(const auto chain, chain_of(experiment));
    if (const auto wrong = find_mismatches(chain, listing); !wrong.empty()) {
        return fail(ErrorKind::invalid, "model_mismatch",
                    one_line_each(fmt::format("{}: error: model \"{}\": ", place, from->name), wrong));
    }
    experiment.model.init_from = from->name + "@" + digest.hex();
    return {};
}

Result<Bytes> canonical_initial_model(const Chain& chain, const InitFrom& from, ByteView file) {
    if (const auto digest = sha256(file); from.digest && digest != *from.digest) {
        return fail(ErrorKind::io, "model_changed",
                    fmt::format("the file of model \"{}\" has changed since the experiment was submitted: {}, not {}; "
                                "put the right one in its place, or cancel",
                                from.name, digest.short_hex(), from.digest->short_hex()));
    }
    TRY_ASSIGN(const auto state, from_safetensors(chain, file));
    return to_safetensors(chain, state);
}

}  // namespace causeway
