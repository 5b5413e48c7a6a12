// Texts that people and peers write: experiment files, policies, JSON, requests of HTTP.
// Thread: one.
#include "client/policy.h"
#include "common/json.h"
#include "configs/examples.h"
#include "configs/reader.h"
#include "coordinator/http_request.h"
#include "tests/fuzz/targets.h"

namespace causeway {
namespace {

void require_all_named(std::span<const ConfigError> errors) {
    REQUIRE_FUZZ(!errors.empty());
    for (const auto& error : errors) {
        REQUIRE_FUZZ(!error.message.empty());
    }
}

void run_experiment(ByteView input) {
    if (const auto read = read_experiment(as_text(input), "file.toml"); !read) {
        require_all_named(read.error());
    }
}
std::vector<Bytes> experiment_seeds() {
    std::vector<Bytes> seeds;
    for (const auto& example : all_examples()) {
        seeds.push_back(to_bytes(example.text));
    }
    seeds.push_back(to_bytes("[experiment]\nname = 1\n[data]\nshape = [8, [8]]\n[x.y]\nz = {a = 1, b = [[[[1]]]]}\n"));
    return seeds;
}

void run_policy(ByteView input) {
    if (const auto read = node::parse_policy(as_text(input), "policy.toml"); !read) {
        require_all_named(read.error());
    }
}
std::vector<Bytes> policy_seeds() {
    return {to_bytes("datasets = [\"digits\"]\nhours = [\"mon-fri 18:00-08:00\"]\nmin_cohort = 3\n"),
            to_bytes("allow_split = true\nregimes = [\"fedavg\"]\noperators = [\"alice\"]\nshare_labels = false\n")};
}

void run_json(ByteView input) {
    const auto json = Json::parse(as_text(input));
    require_named(json);
    if (json) {
        const auto text = json->dump();
        const auto again = Json::parse(text, text.size());
        REQUIRE_FUZZ(again.has_value() && again->dump() == text);
    }
}
std::vector<Bytes> json_seeds() {
    return {to_bytes(R"({"event":"round","loss":1.5e-7,"names":["a","\u00e9"],"deep":[[[[{}]]]],"n":null})"),
            to_bytes("[18446744073709551615,-9223372036854775808,1e400]")};
}

/// The same whether the bytes come at once or one by one, and little is kept of them.
void run_http(ByteView input) {
    HttpRequestReader whole;
    whole.read(as_text(input));
    HttpRequestReader bytewise;
    for (const char c : as_text(input)) {
        bytewise.read({&c, 1});
    }
    REQUIRE_FUZZ(whole.state() == bytewise.state() && whole.status() == bytewise.status());
    REQUIRE_FUZZ((whole.state() == HttpRequestReader::State::refused) == (whole.status() >= 400));
    const auto& request = whole.request();
    REQUIRE_FUZZ(request.path == bytewise.request().path && request.host == bytewise.request().host);
    REQUIRE_FUZZ(request.method.size() + request.path.size() < HttpRequestReader::longest_head);
}
std::vector<Bytes> http_seeds() {
    return {to_bytes("GET /metrics?a=b HTTP/1.1\r\nHost: localhost:9400\r\nAccept: */*\r\n\r\n"),
            to_bytes("POST / HTTP/1.0\nContent-Length: 3\nTransfer-Encoding: chunked\n\nabc")};
}

constexpr FuzzTarget text_targets_table[] = {{"experiment", run_experiment, experiment_seeds, 1000},
                                             {"policy", run_policy, policy_seeds, 2000},
                                             {"json", run_json, json_seeds, 5000},
                                             {"http", run_http, http_seeds, 5000}};

}  // namespace

std::span<const FuzzTarget> text_targets() {
    return text_targets_table;
}

}  // namespace causeway
