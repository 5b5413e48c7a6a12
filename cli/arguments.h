// From the words of the command line to the exit code.
#pragma once

namespace causeway::cli {

/// Parses, runs the chosen command, and returns its exit code (output.h).
int run(int argc, char** argv);

}  // namespace causeway::cli
