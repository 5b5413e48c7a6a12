// roff by hand: a dozen macros of man(7) say all that is needed. A line of text that would be taken for a macro begins
// with an invisible \&, dashes are written \-, so that what is copied from a page is what a shell takes.
#include "cli/manual.h"

#include <fmt/format.h>

#include "common/text.h"

namespace causeway::cli {
namespace {

/// Text of a paragraph.
std::string roff(std::string_view text) {
    std::string safe;
    bool at_start = true;
    for (const char c : text) {
        if (at_start && (c == '.' || c == '\'')) {
            safe += "\\&";
        }
        at_start = c == '\n';
        if (c == '\\') {
            safe += "\\e";
        } else if (c == '-') {
            safe += "\\-";
        } else {
            safe += c;
        }
    }
    return safe;
}

std::string file_name(const std::string& words) {
    auto name = words;
    for (auto& c : name) {
        c = c == ' ' ? '-' : c;
    }
    return name;
}

std::string option_words(const OptionNode& option) {
    return "\\fB" + roff(option.name) + "\\fR" + (option.takes.empty() ? "" : " \\fI" + roff(option.takes) + "\\fR");
}

std::string synopsis(const std::string& words, const CommandNode& command) {
    std::string text = "\\fB" + roff(words) + "\\fR";
    if (!command.commands.empty()) {
        return text + " \\fICOMMAND\\fR ...";
    }
    for (const auto& argument : command.arguments) {
        const auto name = "\\fI" + roff(argument.name) + "\\fR";
        text += argument.required ? " " + name : " [" + name + "]";
    }
    for (const auto& option : command.options) {
        if (option.required) {
            text += " " + option_words(option);
        }
    }
    return text + " [options]";
}

std::string describe(const OptionNode& option) {
    auto text = roff(option.about);
    if (!option.given.empty() && !option.takes.empty()) {
        text += " (default: " + roff(option.given) + ")";
    }
    if (!option.variable.empty()) {
        text += "; the variable \\fB" + roff(option.variable) + "\\fR says it too";
    }
    return text;
}

std::string options_section(std::string_view title, const std::vector<OptionNode>& options) {
    std::string text = options.empty() ? "" : fmt::format(".SH {}\n", title);
    for (const auto& option : options) {
        const bool named = option.name.starts_with('-');
        text += fmt::format(".TP\n{}\n{}\n", named ? option_words(option) : "\\fI" + roff(option.name) + "\\fR",
                            describe(option));
    }
    return text;
}

/// What each command below is called and for, with its own page.
std::string commands_section(const std::string& words, const CommandNode& command) {
    std::string text = command.commands.empty() ? "" : ".SH COMMANDS\n";
    for (const auto& below : command.commands) {
        const auto path = words + " " + below.name;
        if (below.commands.empty()) {
            text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(path), roff(below.about));
            continue;
        }
        for (const auto& leaf : below.commands) {
            text += fmt::format(".TP\n\\fB{} {}\\fR\n{}\n", roff(path), roff(leaf.name), roff(leaf.about));
        }
    }
    return text;
}

/// "Example:\n  causeway ..." as a section of its own; other words as a paragraph.
std::string footer_section(const std::string& footer) {
    const std::string mark = "Example:\n";
    if (!footer.starts_with(mark)) {
        return footer.empty() ? "" : ".SH NOTES\n.nf\n" + roff(footer) + "\n.fi\n";
    }
    return ".SH EXAMPLE\n.nf\n" + roff(trim(footer.substr(mark.size()))) + "\n.fi\n";
}

constexpr std::string_view closing = R"(.SH EXIT STATUS
0 done, 1 failed, 2 usage or invalid configuration, 3 cannot reach or not allowed, 4 timed out.
)";

std::string see_also(const std::string& words, const CommandNode& command) {
    std::string text = ".SH SEE ALSO\n" + roff(words == "causeway" ? "" : "causeway(1)");
    for (const auto& below : command.commands) {
        text += fmt::format("{}{}(1)", text.ends_with('\n') ? "" : ", ", roff(file_name(words + " " + below.name)));
    }
    return text.ends_with('\n') ? "" : text + "\n";
}

ManualPage page(const std::string& words, const CommandNode& command) {
    const auto name = file_name(words);
    auto text =
        fmt::format(".\\\" Made by `causeway man`; do not edit.\n.TH \"{}\" 1 \"\" \"causeway {}\" \"Causeway\"\n",
                    roff(name), CAUSEWAY_VERSION);
    text += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n", roff(name), roff(command.about),
                        synopsis(words, command));
    text += commands_section(words, command) + options_section("ARGUMENTS", command.arguments) +
            options_section("OPTIONS", command.options) + footer_section(command.footer) + std::string(closing) +
            see_also(words, command);
    return {name + ".1", text};
}

/// Depth: that of the tree of commands, 2.
void add_pages(const std::string& words, const CommandNode& command, std::vector<ManualPage>& pages) {
    pages.push_back(page(words, command));
    for (const auto& below : command.commands) {
        add_pages(words + " " + below.name, below, pages);
    }
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandNode& root) {
    std::vector<ManualPage> pages;
    add_pages("causeway", root, pages);
    return pages;
}

}  // namespace causeway::cli
