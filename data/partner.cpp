// Looking for the second file of a pair by name, packed or not.
#include "data/partner.h"

namespace causeway {

std::optional<std::filesystem::path> find_partner(const std::filesystem::path& path,
                                                  const std::vector<std::string>& names) {
    for (const auto& name : names) {
        const auto plain = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
        for (const auto& candidate : {name, plain, plain + ".gz"}) {
            const auto partner = path.parent_path() / candidate;
            std::error_code code;
            if (partner != path && std::filesystem::is_regular_file(partner, code)) {
                return partner;
            }
        }
    }
    return std::nullopt;
}

std::optional<std::string> replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.rfind(from);
    if (at == std::string::npos) {
        return std::nullopt;
    }
    text.replace(at, from.size(), to);
    return text;
}

}  // namespace causeway
