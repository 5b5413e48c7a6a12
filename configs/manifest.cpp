// A manifest's keys, and how each is read. Mistakes are collected; what is wrong is left at its default.
#include "configs/manifest.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "common/text.h"
#include "configs/checks.h"
#include "configs/toml_text.h"
#include "configs/values.h"
#include "data/names.h"
#include "data/reader.h"

namespace causeway {
namespace {

using ManifestKind = TomlNode::Kind;

constexpr std::size_t max_path_bytes = 512;
constexpr std::size_t longest_text = 200;  // of a column's name, a word
constexpr double largest_holdout = 0.9;
constexpr std::int64_t largest_seed = std::int64_t{1} << 53;

bool is_printable(std::string_view text) {
    return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// One reading of one file.
class ManifestReader {
public:
    explicit ManifestReader(TomlText parsed) : tree_(std::move(parsed)) { result_.errors = std::move(tree_.errors); }

    ManifestText read(const Place& start) {
        walk(tree_.root, "",
             {"reader", "file", "label", "features", "classes", "target", "categories", "missing", "split", "header",
              "separator", "encoding", "decimal", "quote"});
        if (tree_.root.find("file") == nullptr) {
            result_.errors.push_back({start, "file: missing: name the data's file, as in file = \"patients.csv\""});
        }
        check_together();
        result_.errors = in_order(std::move(result_.errors));
        return std::move(result_);
    }

private:
    void fault(const Place& place, std::string message) { result_.errors.push_back({place, std::move(message)}); }

    void walk(const TomlNode& table, const std::string& prefix, const std::vector<std::string>& known) {
        for (const auto& member : table.members) {
            if (std::ranges::find(known, member.name) == known.end()) {
                fault(member.place, unknown_name("key", member.name, known));
                continue;
            }
            key_ = prefix + member.name;
            const auto errors = result_.errors.size();
            read_key(member.value);
            if (result_.errors.size() == errors) {
                result_.manifest.places[prefix + member.name] = member.value.place;
            }
        }
    }

    void read_key(const TomlNode& node) {
        auto& manifest = result_.manifest;
        if (key_ == "reader") {
            read_word(node, reader_names(), manifest.choice.reader);
        } else if (key_ == "file") {
            read_path(node, manifest.file);
        } else if (key_ == "label") {
            read_column(node, manifest.label);
        } else if (key_ == "features") {
            read_features(node);
        } else if (key_ == "classes") {
            read_classes(node);
        } else if (key_ == "target") {
            std::string word;
            read_word(node, {"class", "number"}, word);
            manifest.target = word == "number" ? Target::number : Target::classes;
        } else if (key_ == "categories") {
            read_categories(node);
        } else if (key_ == "missing") {
            read_missing(node);
        } else if (key_ == "split") {
            if (expect(node, ManifestKind::table, "a table such as { holdout = \"20%\" }")) {
                walk(node, "split.", {"holdout", "seed", "test"});
            }
        } else if (std::ranges::find(table_form_keys(), key_) != table_form_keys().end()) {
            read_form(node);
        } else if (key_ == "split.test") {
            read_path(node, manifest.test);
        } else if (key_ == "split.seed") {
            read_seed(node);
        } else {
            read_holdout(node);
        }
    }

    bool expect(const TomlNode& node, ManifestKind kind, std::string_view wanted) {
        if (node.kind != kind) {
            fault(node.place, fmt::format("{}: {} is needed, this is {}", key_, wanted, describe(node.kind)));
        }
        return node.kind == kind;
    }

    static std::vector<std::string> reader_names() {
        std::vector<std::string> names;
        for (const auto* reader : readers()) {
            names.emplace_back(reader->name);
        }
        return names;
    }

    void read_word(const TomlNode& node, const std::vector<std::string>& known, std::string& word) {
        if (!expect(node, ManifestKind::text, "a text")) {
            return;
        }
        if (std::ranges::find(known, node.text) == known.end()) {
            return fault(node.place, unknown_name(key_, node.text, known));
        }
        word = node.text;
    }

    /// By its words alone; links are followed and judged where the file is opened.
    void read_path(const TomlNode& node, std::string& path) {
        if (!expect(node, ManifestKind::text, "a path")) {
            return;
        }
        const std::filesystem::path given = node.text;
        const bool climbs = std::ranges::any_of(given, [](const auto& part) { return part == ".."; });
        if (node.text.empty() || node.text.size() > max_path_bytes || !is_printable(node.text)) {
            fault(node.place, fmt::format("{}: a path has 1 to {} printable characters", key_, max_path_bytes));
        } else if (given.is_absolute() || climbs) {
            fault(node.place, fmt::format("{}: \"{}\" leads out of the manifest's folder; put the manifest beside the "
                                          "data, or above it",
                                          key_, node.text));
        } else {
            path = node.text;
        }
    }

    bool read_column(const TomlNode& node, std::string& column) {
        if (node.kind == ManifestKind::integer && node.integer >= 0) {
            column = fmt::format("#{}", node.integer);  // an index, even where a header has this number as a name
            return true;
        }
        if (node.kind != ManifestKind::text || trim(node.text).empty() || node.text.size() > longest_text) {
            fault(node.place,
                  fmt::format("{}: a column is needed: its name, or its number from 0{}", key_,
                              node.kind == ManifestKind::text ? "" : fmt::format("; this is {}", describe(node.kind))));
            return false;
        }
        column = node.text;
        return true;
    }

    bool read_list(const TomlNode& node, std::size_t most) {
        if (!expect(node, ManifestKind::array, "a list")) {
            return false;
        }
        if (node.items.empty() || node.items.size() > most) {
            fault(node.place, fmt::format("{}: 1 to {} items are needed", key_, most));
            return false;
        }
        return true;
    }

    void read_features(const TomlNode& node) {
        if (!read_list(node, max_manifest_features)) {
            return;
        }
        for (const auto& item : node.items) {
            std::string column;
            if (read_column(item, column)) {
                result_.manifest.choice.features.push_back(std::move(column));
                result_.manifest.feature_places.push_back(item.place);
            }
        }
    }

    void read_classes(const TomlNode& node) {
        if (!read_list(node, max_manifest_classes)) {
            return;
        }
        auto& names = result_.manifest.choice.class_names;
        for (const auto& item : node.items) {
            if (!expect(item, ManifestKind::text, "a class's name")) {
                continue;
            }
            auto name = normal_name(item.text);
            if (name.empty() || name.size() > max_class_name_bytes || !is_printable(name)) {
                fault(item.place, fmt::format("classes: a name has 1 to {} printable bytes", max_class_name_bytes));
            } else if (std::ranges::find(names, name) != names.end()) {
                fault(item.place, fmt::format("classes: \"{}\" stands here twice", name));
            } else {
                names.push_back(std::move(name));
            }
        }
    }

    void read_categories(const TomlNode& node) {
        if (!expect(node, ManifestKind::table, "a table such as { sex = [\"f\", \"m\"] }")) {
            return;
        }
        for (const auto& member : node.members) {
            key_ = "categories." + member.name;
            if (!read_list(member.value, max_manifest_classes)) {
                continue;
            }
            Category category{member.name, {}};
            for (const auto& item : member.value.items) {
                if (expect(item, ManifestKind::text, "a word")) {
                    category.values.push_back(normal_name(item.text));
                }
            }
            const DataOptions alone{.categories = {category}};
            for (const auto& error : check_data_options(alone)) {
                fault(member.place, error.message);
            }
            result_.manifest.categories.push_back(std::move(category));
        }
    }

    void read_missing(const TomlNode& node) {
        const bool number = node.kind == ManifestKind::integer || node.kind == ManifestKind::number;
        const auto text =
            node.kind == ManifestKind::integer ? std::to_string(node.integer) : fmt::format("{}", node.number);
        const auto rule = parse_missing(number ? text : node.text);
        if ((!number && node.kind != ManifestKind::text) || !rule) {
            return fault(node.place, "missing: \"refuse\", \"drop\" or a number is needed");
        }
        result_.manifest.missing = *rule;
    }

    void read_form(const TomlNode& node) {
        const auto word = node.kind == ManifestKind::boolean ? (node.boolean ? "yes" : "no") : node.text;
        if (node.kind != ManifestKind::text && !(node.kind == ManifestKind::boolean && key_ == "header")) {
            return fault(node.place, fmt::format("{}: a text is needed, this is {}", key_, describe(node.kind)));
        }
        if (const auto set = set_table_form(result_.manifest.form, key_, word); !set) {
            fault(node.place, set.error().message);
        }
    }

    void read_seed(const TomlNode& node) {
        if (node.kind != ManifestKind::integer || node.integer < 0 || node.integer > largest_seed) {
            return fault(node.place, fmt::format("split.seed: a whole number from 0 to {} is needed", largest_seed));
        }
        result_.manifest.seed = static_cast<std::uint64_t>(node.integer);
    }

    void read_holdout(const TomlNode& node) {
        const auto share = node.kind == ManifestKind::text ? parse_share(node.text) : std::nullopt;
        if (!share || !(*share > 0 && *share <= largest_holdout)) {
            return fault(node.place, "split.holdout: a share above \"0%\", at most \"90%\", is needed");
        }
        result_.manifest.holdout = *share;
    }

    void check_together() {
        const auto& manifest = result_.manifest;
        const auto place = [&](std::string_view key) {
            const auto found = manifest.places.find(key);
            return found == manifest.places.end() ? nullptr : &found->second;
        };
        if (place("split.test") != nullptr && place("split.holdout") != nullptr) {
            fault(*place("split.holdout"), "split.holdout: there is a test file already; leave one of the two out");
        }
        if (place("split.seed") != nullptr && place("split.holdout") == nullptr) {
            fault(*place("split.seed"), "split.seed: it draws a holdout, and none is asked for");
        }
        if (const auto wrong = table_form_fault(manifest.form); !wrong.empty()) {
            fault(*place("separator"), wrong);
        }
        if (place("classes") != nullptr && manifest.target == Target::number) {
            fault(*place("classes"), "classes: a label that is a number (target = \"number\") has no classes");
        }
    }

    TomlText tree_;
    ManifestText result_;
    std::string key_;  // that is being read
};

}  // namespace

ManifestText parse_manifest(std::string_view text, std::string_view file_name) {
    const Place start{Place::Origin::file, std::string(file_name), 1, 1};
    if (text.size() > max_manifest_bytes) {
        return {{}, {{start, fmt::format("longer than {} bytes", max_manifest_bytes)}}};
    }
    return ManifestReader(parse_toml(text, file_name)).read(start);
}

}  // namespace causeway
