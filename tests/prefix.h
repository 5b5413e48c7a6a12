// What most files include, precompiled once for a sanitizer build (tests/sanitize), which then compiles in two thirds
// of the time: at -O0 most of it goes into headers and into the same instantiations again and again.
//
// Nothing may need it: every other build compiles each file by its own includes alone.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "common/digest.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "common/queue.h"
#include "common/random.h"
#include "common/text.h"
