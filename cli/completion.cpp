// Both shells do the same: find the command from the words so far, then offer its subcommands and options, or the
// values of the option before. A path is " experiment submit": each word with a space before it, the root is empty.
#include "cli/completion.h"

#include <functional>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway::cli {
namespace {

using Visit = std::function<void(const std::string& path, const CommandNode& command)>;

/// Depth: that of the tree of commands, 2.
void walk(const CommandNode& command, const std::string& path, const Visit& visit) {
    visit(path, command);
    for (const auto& below : command.commands) {
        walk(below, path + " " + below.name, visit);
    }
}

/// Alternatives of a case: "' experiment'|' experiment list'".
std::string all_paths(const CommandNode& root) {
    std::vector<std::string> paths;
    walk(root, "", [&](const std::string& path, const CommandNode&) {
        if (!path.empty()) {
            paths.push_back("'" + path + "'");
        }
    });
    return join(paths, "|");
}

/// A branch per option that takes something; the key is path and option.
std::string value_cases(const CommandNode& root, const std::function<std::string(const OptionNode&)>& branch) {
    std::string text;
    walk(root, "", [&](const std::string& path, const CommandNode& command) {
        for (const auto& option : command.options) {
            if (option.value != ValueKind::none) {
                text += fmt::format("        '{} {}') {} ;;\n", path, option.name, branch(option));
            }
        }
    });
    return text;
}

std::string bash_value(const OptionNode& option) {
    switch (option.value) {
        case ValueKind::choice:
            return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\")); return", join(option.choices, " "));
        case ValueKind::file:
            return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); return";
        case ValueKind::folder:
            return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$current\")); return";
        case ValueKind::any:
        case ValueKind::none:
            break;
    }
    return "return";
}

std::string bash_words(const CommandNode& command) {
    std::vector<std::string> words;
    for (const auto& below : command.commands) {
        words.push_back(below.name);
    }
    for (const auto& option : command.options) {
        words.push_back(option.name);
    }
    return join(words, " ");
}

/// Within single quotes of _describe, a colon separates and a quote ends.
std::string zsh_text(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        safe += c == '\'' ? std::string("'\\''") : c == ':' ? std::string("\\:") : std::string(1, c);
    }
    return safe;
}

std::string zsh_value(const OptionNode& option) {
    switch (option.value) {
        case ValueKind::choice:
            return fmt::format("compadd -- {}; return", join(option.choices, " "));
        case ValueKind::file:
            return "_files; return";
        case ValueKind::folder:
            return "_files -/; return";
        case ValueKind::any:
        case ValueKind::none:
            break;
    }
    return "return";
}

std::string zsh_lines(const CommandNode& command) {
    std::string text;
    for (const auto& below : command.commands) {
        text += fmt::format(" '{}:{}'", below.name, zsh_text(below.about));
    }
    for (const auto& option : command.options) {
        text += fmt::format(" '{}:{}'", option.name, zsh_text(option.about));
    }
    return text;
}

}  // namespace

std::string bash_completion(const CommandNode& root) {
    std::string words;
    walk(root, "", [&](const std::string& path, const CommandNode& command) {
        words += fmt::format("        '{}') words='{}' ;;\n", path, bash_words(command));
    });
    return fmt::format(R"(# bash completion for causeway. Install with:
#   causeway completion bash > ~/.local/share/bash-completion/completions/causeway
_causeway() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" path='' word words=''
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path $word" in
        {}) path="$path $word" ;;
        esac
    done
    COMPREPLY=()
    case "$path ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}    esac
    case "$path" in
{}    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _causeway causeway
)",
                       all_paths(root), value_cases(root, bash_value), words);
}

std::string zsh_completion(const CommandNode& root) {
    std::string lines;
    walk(root, "", [&](const std::string& path, const CommandNode& command) {
        lines += fmt::format("        '{}') lines=({}) ;;\n", path, zsh_lines(command));
    });
    return fmt::format(R"(#compdef causeway
# zsh completion for causeway. Install into a folder of $fpath:
#   causeway completion zsh > ~/.zfunc/_causeway
_causeway() {{
    local path_so_far='' word
    local -a lines
    for word in "${{words[@]:1:$((CURRENT - 2))}}"; do
        case "$path_so_far $word" in
        {}) path_so_far="$path_so_far $word" ;;
        esac
    done
    case "$path_so_far ${{words[CURRENT-1]}}" in
{}    esac
    case "$path_so_far" in
{}    esac
    _describe 'causeway' lines
    [[ -z $path_so_far ]] || _files
}}
_causeway "$@"
)",
                       all_paths(root), value_cases(root, zsh_value), lines);
}

}  // namespace causeway::cli
