// Benchmarks with several processes: a pull over TLS, and whole rounds of a local federation.
#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>

#include "cli/bench.h"
#include "cli/bench_folder.h"
#include "cli/local_federation.h"
#include "common/random.h"
#include "configs/reader.h"
#include "wire/transfer_engine.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t blob_bytes = 256 << 20;
constexpr std::size_t queue_limit = 4096;
constexpr Duration bound = std::chrono::seconds(60);
constexpr int pulls = 3;

std::shared_ptr<const Bytes> make_blob() {
    auto blob = std::make_shared<Bytes>(blob_bytes);
    RandomStream random({.seed = 1, .purpose = "bench"});
    for (std::size_t i = 0; i < blob->size(); i += 4096) {
        (*blob)[i] = static_cast<std::byte>(random.next_u32());
    }
    return blob;
}

Result<Credentials> credentials(const Authority& authority, Role role, const std::string& name) {
    Credentials made{.identity = {authority.federation, role, name},
                     .key = make_key(),
                     .certificate = {},
                     .authority_certificate = authority.certificate};
    TRY_ASSIGN(made.certificate, issue_certificate(authority, made.key.public_key, made.identity, wall_clock_unix_s()));
    return made;
}

LinkQueues make_queues() {
    return {std::make_shared<LinkEvents>(queue_limit), std::make_shared<LinkEvents>(queue_limit)};
}

double processor_seconds(int who) {
    rusage usage{};
    ::getrusage(who, &usage);
    const auto part = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return part(usage.ru_utime) + part(usage.ru_stime);
}

/// The connecting side of a transfer, up to where it may fetch.
struct Puller {
    LinkQueues queues = make_queues();
    std::unique_ptr<Link> link;
    std::unique_ptr<TransferEngine> engine;
    ConnectionId connection = 0;

    Status connect(const BenchFolder& folder, const Address& address) {
        TRY_ASSIGN(auto own, load_credentials(folder.path / "client"));
        TRY_ASSIGN(link, Link::start({.credentials = std::move(own)}, queues));
        const auto nothing = [](const Digest&, const PeerIdentity&) -> Result<Blob> {
            return fail(ErrorKind::refused, "not_served", "nothing is served here");
        };
        engine = std::make_unique<TransferEngine>(*link, queues.bulk, nothing);
        connection = link->connect({.to = address});
        while (const auto event = queues.control->pop_for(bound)) {
            if (std::holds_alternative<PeerOpened>(*event)) {
                link->send(connection, Hello{.software = "bench"});
            }
            const auto* message = std::get_if<PeerMessage>(&*event);
            if (const auto* welcome = message ? std::get_if<Welcome>(&message->message) : nullptr) {
                engine->attach(connection, address, welcome->session);
                return {};
            }
            if (const auto* closed = std::get_if<PeerClosed>(&*event)) {
                return fail(closed->why);
            }
        }
        return fail(ErrorKind::timed_out, "no_welcome", "the serving process did not answer");
    }

    Result<double> pull(const Digest& digest, const std::filesystem::path& file) {
        BoundedQueue<Result<std::filesystem::path>> done(1);
        const auto begin = real_now();
        engine->fetch(connection, {.digest = digest, .bytes = blob_bytes, .destination = file},
                      [&](Result<std::filesystem::path> result) { done.push(std::move(result)); });
        const auto result = done.pop_for(bound);
        if (!result) {
            return fail(ErrorKind::timed_out, "stalled", "the pull did not end");
        }
        TRY(*result);
        return seconds(real_now() - begin);
    }
};

Result<Address> wait_for_server(const BenchFolder& folder, Process& server) {
    BoundedQueue<int> nothing(1);
    for (const auto deadline = real_now() + bound; real_now() < deadline && server.running();) {
        if (const auto text = read_file(folder.path / "address", 256)) {
            return parse_address(as_text(*text));
        }
        (void)nothing.pop_for(std::chrono::milliseconds(10));
    }
    return fail(ErrorKind::io, "cannot_start", "the serving process did not start: " + server.log_tail());
}

Status write_credentials(const BenchFolder& folder) {
    TRY_ASSIGN(const auto authority, make_authority("bench", wall_clock_unix_s()));
    for (const auto& [role, name] : {std::pair(Role::coordinator, "server"), std::pair(Role::client, "client")}) {
        TRY_ASSIGN(const auto made, credentials(authority, role, name));
        TRY(make_private_folder(folder.path / name));
        TRY(save_credentials(folder.path / name, made));
    }
    return {};
}

/// 100,035 parameters and next to no training: one example a client.
constexpr std::string_view rounds_experiment = R"(
[experiment]
name   = "bench-rounds"
rounds = 300
[data]
dataset = "bench"
label   = "last"
shape   = [64]
[model]
layers = ["dense 1000", "relu", "dense 35"]
[train]
optimizer = { kind = "sgd", learning_rate = 0.01 }
batch = "full"
[regime]
preset = "fedavg"
[sync]
min_clients = 8
[evaluation]
where = "none"
)";

std::string tiny_dataset(std::size_t examples) {
    std::string text;
    for (std::size_t row = 0; row < examples; ++row) {
        for (int column = 0; column < 64; ++column) {
            text += fmt::format("{},", (row * 7 + static_cast<std::size_t>(column)) % 5);
        }
        text += fmt::format("{}\n", row % 35);
    }
    return text;
}

}  // namespace

/// The serving side, in a process of its own: `causeway bench transfer-server --data FOLDER`, for bench_transfer only.
Result<std::vector<BenchRow>> serve_transfer(const BenchOptions& options) {
    const std::filesystem::path folder = options.data;
    TRY(prepare_process_for_links(16));
    TRY_ASSIGN(auto own, load_credentials(folder / "server"));
    const auto queues = make_queues();
    TRY_ASSIGN(const auto link,
               Link::start({.credentials = std::move(own), .listen = Address{"127.0.0.1", 0}}, queues));
    const auto blob = make_blob();
    const TransferEngine engine(*link, queues.bulk,
                                [&](const Digest&, const PeerIdentity&) -> Result<Blob> { return Blob(blob); });
    TRY(write_file_durably(folder / "address", as_bytes(Address{"127.0.0.1", link->port()}.text())));
    while (const auto event = queues.control->pop_for(bound)) {
        const auto* message = std::get_if<PeerMessage>(&*event);
        if (message && std::holds_alternative<Hello>(message->message)) {
            link->send(message->connection, Welcome{.session = message->connection, .federation = "bench"});
        }
        if (std::holds_alternative<PeerClosed>(*event)) {
            break;
        }
    }
    return std::vector<BenchRow>{};
}

Result<std::vector<BenchRow>> bench_transfer(const BenchOptions&) {
    const BenchFolder folder;
    TRY(prepare_process_for_links(16));
    TRY(write_credentials(folder));
    TRY_ASSIGN(auto server,
               Process::start({own_path().string(), "bench", "transfer-server", "--data", folder.path.string()}, "",
                              folder.path / "server.log"));
    TRY_ASSIGN(const auto address, wait_for_server(folder, server));
    const auto digest = sha256(*make_blob());
    std::vector<double> times;
    double processor = 0;
    {
        Puller puller;
        TRY(puller.connect(folder, address));
        processor = processor_seconds(RUSAGE_SELF);
        for (int i = 0; i < pulls; ++i) {
            TRY_ASSIGN(const double time, puller.pull(digest, folder.path / fmt::format("pulled-{}", i)));
            times.push_back(time);
        }
        processor = processor_seconds(RUSAGE_SELF) - processor;
    }
    server.stop();
    std::ranges::sort(times);
    const double gigabytes = 1e-9 * static_cast<double>(blob_bytes);
    return std::vector{
        BenchRow{"pull of 256 MiB into a file, SHA-256 verified, flushed", gigabytes / times[pulls / 2], "GB/s", ""},
        BenchRow{"receiver's processor time", processor / (gigabytes * pulls), "s/GB", "hashing and writing included"}};
}

Result<std::vector<BenchRow>> bench_rounds(const BenchOptions&) {
    const BenchFolder folder;
    TRY(write_file_durably(folder.path / "bench.csv", as_bytes(tiny_dataset(8))));
    LocalOptions options;
    TRY_ASSIGN(options.experiment, read_experiment_or_fail(rounds_experiment, "bench-rounds"));
    options.dataset = folder.path / "bench.csv";
    options.folder = folder.path;
    options.clients = 8;
    options.status = [](const std::string&) {};
    TRY_ASSIGN(const auto federation, LocalFederation::start(options));
    std::vector<double> times;
    TRY_ASSIGN(const auto done, federation->run([&](const Json& event) {
        if (event["event"].text() == "round") {
            times.push_back(event["seconds"].number());
        }
    }));
    federation->stop();
    if (done["state"].text() != "succeeded" || times.empty()) {
        return fail(ErrorKind::io, "bench_failed", "the rounds ended with: " + done["reason"].text());
    }
    std::ranges::sort(times);
    const double median = times[times.size() / 2];
    const auto bytes = done["bytes_up"].integer() / std::max<std::int64_t>(1, done["rounds"].integer());
    return std::vector{
        BenchRow{"8 clients, 100,035 parameters, durable commits", 1 / median, "rounds/s",
                 "each client trains one example"},
        BenchRow{"one round", 1e3 * median, "ms", ""},
        BenchRow{"bytes up a round", 1e-6 * static_cast<double>(bytes), "MB", "at the socket; 8 x 400 KB of values"}};
}

}  // namespace causeway::cli
