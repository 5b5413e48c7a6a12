// Catch2's main, compiled once: it takes seconds.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
