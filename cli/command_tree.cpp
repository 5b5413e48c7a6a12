// See command_tree.h. What an option takes is told by its type's name (DIR, FILE, WORD), as arguments.cpp gives it.
#include "cli/command_tree.h"

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

std::string usage_message(CLI::App& root, std::span<char*> words, const std::string& wrong) {
    const auto named = named_command(root, words);
    std::vector<std::string> commands;
    for (const auto* app : named.app->get_subcommands({})) {
        commands.push_back(app->get_name());
    }
    auto message = wrong;
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
