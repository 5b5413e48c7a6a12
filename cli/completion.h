// Completion scripts for bash and zsh, made from the tree of commands, so that they never lag behind it.
//
// command_tree.h gives the tree; the scripts hold it as one table of words per command and ask
// nothing of the program while a person types. Pure.
#pragma once

#include <string>
#include <vector>

namespace causeway::cli {

enum class ValueKind { none, any, file, folder, choice };

struct OptionNode {
    std::string name;  // "--state"
    std::string about;
    ValueKind value = ValueKind::none;
    std::vector<std::string> choices = {};  // of ValueKind::choice
    std::string takes = {};                 // "DIR"; empty: a flag
    std::string given = {};                 // its default
    std::string variable = {};              // of the environment, that stands for it
    bool required = false;
};
struct CommandNode {
    std::string name;
    std::string about;
    std::vector<OptionNode> options = {};
    std::vector<CommandNode> commands = {};
    std::vector<OptionNode> arguments = {};  // without a name on the command line, in their order
    std::string footer = {};                 // the example
};

[[nodiscard]] std::string bash_completion(const CommandNode& root);
[[nodiscard]] std::string zsh_completion(const CommandNode& root);

}  // namespace causeway::cli
