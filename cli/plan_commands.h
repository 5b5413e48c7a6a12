// Options of `plan`, `experiment leakage` and of the demo with shaped links, apart from commands.h: few files need
// them. The commands themselves are in plan.cpp, leakage.cpp and demo.cpp; plan_profile.h reads who is planned for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace causeway::cli {

struct PlanOptions {
    std::string file;  // a path or an example's name
    std::vector<std::string> set;
    std::vector<std::string> data;  // NAME=PATH
    std::string state;              // a coordinator's, whose nodes are planned for; empty: none
    std::string profile;            // a TOML file with the clients; empty: the options below
    std::uint32_t clients = 5;
    std::uint64_t examples = 0;  // of each client; 0: as the demo would divide the dataset
    std::string link;            // a mix; empty: 100 Mbit/s and 5 ms
    std::string slow;            // a mix of factors; empty: as fast as this machine
    double step_seconds = 0;     // of one batch on this machine; 0: measured
    std::string host_memory;     // "8GB"; empty: no limit
    std::string client_memory;
    std::string regime;  // only this one; empty: all
    bool apply = false;
};
int run_plan(const PlanOptions& options, Output output);

struct ShapedDemoOptions : DemoOptions {
    std::string link;  // a mix of the clients' links, empty: this machine's own; shaped_links.h
    std::string slow;  // a mix of factors of the clients; empty: as fast as this machine
};
int run_shaped_demo(const ShapedDemoOptions& options, Output output);

struct LeakageOptions {
    std::string file;
    std::vector<std::string> set;
    std::vector<std::string> data;
    std::string model;             // a safetensors file; empty: the initial model
    std::uint32_t examples = 500;  // at most
    double noise = 0;              // scale of noise on smashed data, to see what it hides; 0: the file's
};
int run_experiment_leakage(const LeakageOptions& options, Output output);

}  // namespace causeway::cli
