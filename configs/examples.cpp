// Looking up an example. The table itself is generated (embed_examples.py).
#include "configs/examples.h"

#include "common/text.h"
#include "configs/checks.h"

namespace causeway {

Result<std::string> find_example(std::string_view name) {
    std::vector<std::string> names;
    for (const auto& example : all_examples()) {
        if (example.name == name) {
            return std::string(example.text);
        }
        names.emplace_back(example.name);
    }
    return fail(ErrorKind::not_found, "unknown_example", unknown_name("example", name, names));
}

}  // namespace causeway
