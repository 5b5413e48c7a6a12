// The options of commands that follow an experiment. Includes CLI11, as arguments.cpp does.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace causeway::cli {

inline void add_reconnect(CLI::App* app, std::string& reconnect) {
    app->add_option("--reconnect", reconnect, "a coordinator that is away is waited for so long (then exit code 3)")
        ->capture_default_str()
        ->type_name("DURATION");
}

/// Of the commands that follow one by their nature.
inline void add_reconnect_where_followed(CLI::App* app, const std::string& command, std::string& reconnect) {
    if (command == "watch" || command == "wait") {
        add_reconnect(app, reconnect);
    }
}

inline void add_timeout(CLI::App* app, std::string& timeout) {
    app->add_option("--timeout", timeout, "give up after this long (exit code 4)")->type_name("DURATION");
}

inline void add_watch(CLI::App* app, bool& watch, std::string& reconnect) {
    app->add_flag("--watch", watch, "follow it to its end");
    add_reconnect(app, reconnect);
}

}  // namespace causeway::cli
