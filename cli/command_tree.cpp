// See command_tree.h. What an option takes is told by its type's name (DIR, FILE, WORD), as arguments.cpp gives it.
#include "cli/command_tree.h"

#include <algorithm>
#include <vector>

#include "common/text.h"

namespace causeway::cli {
namespace {

/// How far the words name commands, and the first word that should have been one.
struct Named {
    CLI::App* app = nullptr;
    std::string words = "causeway";
    std::string unknown;
};

Named named_command(CLI::App& root, std::span<char*> arguments) {
    Named named{.app = &root, .unknown = {}};
    for (const std::string word : arguments) {
        if (named.app->get_subcommands({}).empty()) {
            break;
        }
        if (word.starts_with('-')) {
            continue;
        }
        const auto below = named.app->get_subcommands([&](CLI::App* app) { return app->get_name() == word; });
        if (below.empty()) {
            named.unknown = word;
            break;
        }
        named.app = below.front();
        named.words += " " + word;
    }
    return named;
}

/// What may follow an option, by the name of its type; a WORD's description ends with the words.
OptionNode node_of(const CLI::Option& option) {
    OptionNode node{option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front(),
                    option.get_description()};
    node.required = option.get_required();
    if (option.get_items_expected_max() == 0) {
        return node;
    }
    const auto type = option.get_type_name();
    const auto words = node.about.rfind(": ");
    node.takes = type.empty() || type == "TEXT" || type == "UINT" ? std::string("TEXT") : type;
    node.given = option.get_default_str();
    node.variable = option.get_envname();
    if (type == "WORD" && words != std::string::npos) {
        node.value = ValueKind::choice;
        for (const auto& word : split_text(node.about.substr(words + 2), ',')) {
            node.choices.emplace_back(trim(word));
        }
    } else {
        node.value = type == "DIR" ? ValueKind::folder : type == "FILE" ? ValueKind::file : ValueKind::any;
    }
    return node;
}

}  // namespace

CommandNode tree_of(const CLI::App& app) {
    CommandNode node{app.get_name(), app.get_description()};
    for (const auto* option : app.get_options()) {
        auto& list = option->get_lnames().empty() ? node.arguments : node.options;
        list.push_back(node_of(*option));
    }
    for (const auto* below : app.get_subcommands([](const CLI::App* each) { return !each->get_name().empty(); })) {
        node.commands.push_back(tree_of(*below));
    }
    node.footer = app.get_footer();
    return node;
}

namespace {

/// CLI11's own words for a value that is no number, as people would say them.
std::string in_words(const std::string& wrong) {
    const std::string mark = "Could not convert: ";
    const auto equals = wrong.find(" = ");
    if (!wrong.starts_with(mark) || equals == std::string::npos) {
        return wrong;
    }
    return wrong.substr(mark.size(), equals - mark.size()) + ": a number is needed, this is \"" +
           wrong.substr(equals + 3) + "\"";
}

/// The first word that looks like an option and is none of the command's, nor of the program's.
std::string unknown_option(const CLI::App& root, const Named& named, std::span<char*> words,
                           std::vector<std::string>& known) {
    for (const auto* app : {&root, static_cast<const CLI::App*>(named.app)}) {
        for (const auto* option : app->get_options()) {
            for (const auto& name : option->get_lnames()) {
                known.push_back("--" + name);
            }
        }
    }
    for (const std::string word : words) {
        const auto name = word.substr(0, word.find('='));
        if (name.starts_with("--") && std::ranges::find(known, name) == known.end()) {
            return name;
        }
    }
    return "";
}

/// "The following argument was not expected: --jsno", as people would say it.
std::string surplus_words(const CLI::App& root, const Named& named, std::span<char*> words, const std::string& wrong) {
    std::vector<std::string> known;
    const auto option = unknown_option(root, named, words, known);
    if (!option.empty()) {
        const auto near = nearest_name(option, known);
        return "`" + named.words + "` has no option " + option + (near ? "; did you mean " + *near + "?" : "");
    }
    const auto colon = wrong.find(": ");
    return "`" + named.words +
           "` takes no further argument: " + (colon == std::string::npos ? wrong : wrong.substr(colon + 2));
}

}  // namespace

std::string usage_message(CLI::App& root, std::span<char*> words, const std::string& wrong) {
    const auto named = named_command(root, words);
    std::vector<std::string> commands;
    for (const auto* app : named.app->get_subcommands({})) {
        commands.push_back(app->get_name());
    }
    auto message =
        wrong.find("not expected") != std::string::npos ? surplus_words(root, named, words, wrong) : in_words(wrong);
    if (!named.unknown.empty()) {
        const auto near = nearest_name(named.unknown, commands);
        message = "`" + named.words + "` has no command \"" + named.unknown + "\"" +
                  (near ? "; did you mean \"" + *near + "\"?" : ". It has: " + join(commands, ", "));
    } else if (!commands.empty()) {
        message = "`" + named.words + "` needs a command: " + join(commands, ", ");
    }
    return message + "\nnext: " + named.words + " --help";
}

}  // namespace causeway::cli
