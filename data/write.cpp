// The text of a part, and the files of a split.
//
// CSV because every tool reads it and the shortest text of a float is exact; gzip because text is four times larger.
// Nothing is written until the division has been drawn: a split that cannot be leaves no folder behind.
#include "data/write.h"

#include <charconv>

#include <fmt/format.h>

#include "common/output_folder.h"
#include "common/text.h"
#include "data/csv.h"
#include "data/gzip.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

PartNote note_of(const Dataset& raw) {
    PartNote note;
    note.header = !raw.layout.columns.empty();  // names may be numbers, and rows may look like names
    if (raw.labelled() || raw.regression()) {
        note.label = raw.layout.label_column;
        note.classes = raw.classes;
    }
    note.expanded = raw.layout.expanded;
    if (raw.shape.size() > 1) {  // a flat example says its own shape
        note.shape = raw.shape;
    }
    return note;
}

// As a header's name must stand to be read back: in quotes where it holds a separator, a quote, a line break, outer
// spaces or a '#'.
std::string quoted_name(std::string_view name) {
    const bool plain = name.find_first_of(",\"#\r\n") == std::string_view::npos && trim(name) == name && !name.empty();
    if (plain) {
        return std::string(name);
    }
    std::string quoted = "\"";
    for (const char c : name) {
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    }
    return quoted + '"';
}

void append_header(const RowLayout& layout, std::string& text) {
    std::vector<std::string> names;
    for (const auto& name : layout.columns) {
        names.push_back(quoted_name(name));
    }
    text += names.empty() ? "" : join(names, ",") + "\n";
}

// The shortest text that reads back to the same float: "5", "0.1", "1e-07".
void append_float(float value, std::string& text) {
    char digits[32];  // the longest shortest float has 15
    const auto [end, code] = std::to_chars(digits, digits + sizeof digits, value);
    ASSERT(code == std::errc());
    text.append(digits, end);
}

// The label goes back where it stood: before the feature of the same number, or behind the last.
void append_csv_row(const Dataset& raw, std::size_t row, std::string& text) {
    const std::size_t width = raw.example_size();
    const bool labelled = raw.labelled() || raw.regression();
    for (std::size_t column = 0; column <= width; ++column) {
        if (labelled && column == raw.layout.label_column) {
            if (raw.regression()) {
                append_float(raw.targets[row], text);
            } else {
                text += fmt::format("{}", raw.labels[row]);
            }
            text += column < width ? "," : "";
        }
        if (column < width) {
            append_float(raw.features[row * width + column], text);
            const bool last = column + 1 == width && !(labelled && raw.layout.label_column >= width);
            text += last ? "" : ",";
        }
    }
    text += '\n';
}

// Parts of an earlier split. A reader of the folder joins all parts it finds, and one split's part may hold another's
// held-out examples.
std::vector<fs::path> old_parts(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code code;
    for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator();
         entry.increment(code)) {
        const auto name = entry->path().filename().string();
        if (name.ends_with(".csv.gz") && (name.starts_with("part-") || name.starts_with("holdout"))) {
            found.push_back(entry->path());
        }
    }
    return found;
}

Status refuse_old_parts(const fs::path& folder) {
    const auto old = old_parts(folder);
    if (old.empty()) {
        return {};
    }
    return fail(ErrorKind::invalid, "folder_in_use",
                fmt::format("{} holds {} already: parts of two splits must not mix. Choose another folder, or add "
                            "--force to replace the old parts",
                            folder.string(), old.front().filename().string()));
}

Result<WrittenPart> write_some(const Dataset& raw, const Indices& indices, const fs::path& path, mode_t mode) {
    const Dataset part = subset(raw, indices);
    TRY(write_output(path, encode_part(part), mode, Existing::kept));
    return WrittenPart{path.filename(), part.size(), dataset_digest(part)};
}

}  // namespace

Bytes encode_part(const Dataset& raw) {
    std::string text = to_text(note_of(raw));
    text += text.empty() ? "" : "\n";
    append_header(raw.layout, text);
    for (std::size_t row = 0; row < raw.size(); ++row) {
        append_csv_row(raw, row, text);
    }
    return gzip(as_bytes(text));
}

Result<std::vector<WrittenPart>> write_split(const Dataset& raw, const DividePlan& plan, const fs::path& folder,
                                             const SplitOutput& output) {
    TRY_ASSIGN(const auto division, divide(raw, plan.holdout, plan.partition, plan.parts, plan.seed));
    if (output.existing == Existing::kept) {
        TRY(refuse_old_parts(folder));
    }
    TRY_ASSIGN(auto made, OutputFolder::make(folder, folder_mode(output.mode)));
    TRY_ASSIGN(const auto scratch, ScratchFolder::make(folder));
    std::vector<WrittenPart> written;
    for (std::size_t i = 0; i < division.parts.size(); ++i) {
        TRY_ASSIGN(auto part, write_some(raw, division.parts[i], scratch.path() / fmt::format("part-{}.csv.gz", i + 1),
                                         output.mode));
        written.push_back(std::move(part));
    }
    if (!division.held_out.empty()) {
        TRY_ASSIGN(auto part, write_some(raw, division.held_out, scratch.path() / "holdout.csv.gz", output.mode));
        written.push_back(std::move(part));
    }
    auto old = old_parts(folder);
    for (auto& part : written) {
        const auto name = part.path;
        part.path = folder / name;
        TRY(move_output(scratch.path() / name, part.path, output.existing));
        std::erase(old, part.path);
    }
    for (const auto& each : old) {
        std::error_code ignored;
        fs::remove(each, ignored);
    }
    made.keep();
    return written;
}

}  // namespace causeway
