// The one executable. Everything a command does is behind cli::run; see cli/commands.h for the list.
#include "cli/arguments.h"

int main(int argc, char** argv) {
    return causeway::cli::run(argc, argv);
}
