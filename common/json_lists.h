// Lists in JSON, and texts back: names of nodes in decisions, commits and requests, words and numbers in replies.
//
// Apart from json.h, which half of the folders include. What is no list gives none, as everywhere in Json: who must
// know the difference asks before. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/json.h"

namespace causeway {

template <class Value>
Json json_of(const std::vector<Value>& values) {
    auto list = Json::array();
    for (const auto& value : values) {
        list.push(value);
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
