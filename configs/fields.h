// The table of all keys of an experiment file: each declared once, everything else made from it.
//
// A row points at a member of Experiment (whose initial value is the default) and says how its value is spelt, within
// what bounds, and what it means. To add a key: a member in experiment.h and a row in fields.cpp; then
// `causeway experiment fields > docs/configuration.md`. Constant data, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/experiment.h"

namespace causeway {

/// The member of an Experiment that a row stands for; its type decides how a value is spelt.
using FieldAccess = std::variant<std::string& (*)(Experiment&), bool& (*)(Experiment&), std::uint32_t& (*)(Experiment&),
                                 std::uint64_t& (*)(Experiment&), double& (*)(Experiment&), Duration& (*)(Experiment&),
                                 CountOrShare& (*)(Experiment&), std::vector<std::string>& (*)(Experiment&),
                                 std::vector<std::vector<std::string>>& (*)(Experiment&), Shape& (*)(Experiment&)>;

enum class NumberStyle { plain, share };     // 0.05, or "20%" of a whole
enum class ListStyle { list, one_or_list };  // a list of one may be written, and is printed, without brackets
enum class Presence { optional, required };  // required: wherever `only_with` applies

/// A check that another folder owns (codec, aggregator, scale, ...): the canonical spelling, or what is wrong.
using TextCheck = Result<std::string> (*)(const std::string& text);

struct Field {
    std::string path;  // "data.partition.alpha"
    FieldAccess access;
    Presence presence = Presence::optional;
    NumberStyle style = NumberStyle::plain;
    ListStyle list = ListStyle::list;
    double least = 0;  // inclusive bounds: of a number, a share, a count; seconds of a duration; items of a list
    double most = 0;
    std::vector<std::string> choices;  // of a text; empty: free
    std::size_t longest = 200;         // bytes of one text; a layer or a codec is far shorter
    TextCheck check = nullptr;         // of a text; decides before `choices`, which then only document
    std::string word;                  // a text that stands for the count 0: "full"
    bool takes_number = false;         // of a text: 4 is taken as "4"
    std::string only_with;             // "data.partition.kind=dirichlet": applies only with that value, or "=a|b"
    std::string hint;                  // what to do where it does not apply
    std::string unit;                  // "examples", for people
    std::string doc;                   // one sentence
    std::string example;               // a TOML value
};

/// Sorted by table as a file is written: experiment, data, model, train, regime, mesh, flow, sync, codec, evaluation.
[[nodiscard]] std::span<const Field> all_fields();
/// nullptr when there is none with that path.
[[nodiscard]] const Field* find_field(std::string_view path);

/// One sentence per table, for the file made by `experiment init` and for docs/configuration.md.
struct TableDoc {
    std::string name;
    std::string doc;
};
[[nodiscard]] std::span<const TableDoc> all_tables();

/// False when `only_with` names another value than the experiment has.
[[nodiscard]] bool applies(const Field& field, const Experiment& experiment);

}  // namespace causeway
