// Lists of texts in JSON and back: names of nodes in decisions, commits and requests, words in replies.
//
// Apart from json.h, which half of the folders include. What is no list gives none, as everywhere in Json: who must
// know the difference asks before. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/json.h"

namespace causeway {

inline Json json_of(const std::vector<std::string>& texts) {
    auto list = Json::array();
    for (const auto& text : texts) {
        list.push(text);
    }
    return list;
}

inline std::vector<std::string> texts_of(const Json& list) {
    std::vector<std::string> texts;
    for (const auto& item : list.items()) {
        texts.push_back(item.text());
    }
    return texts;
}

}  // namespace causeway
