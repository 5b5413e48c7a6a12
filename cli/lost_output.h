// Thrown by the writing to standard output (output.cpp), caught at the boundary: the one exception of this program's
// own. A result would have to be asked for after each line that a command prints.
#pragma once

namespace causeway::cli {

struct OutputIsLost {
    int reason = 0;  // an errno
};

}  // namespace causeway::cli
