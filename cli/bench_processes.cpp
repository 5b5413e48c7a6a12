// The benchmark of a pull over TLS between two processes.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <sys/resource.h>

#include "cli/bench.h"
#include "cli/bench_folder.h"
#include "cli/local_federation.h"
#include "common/file.h"
#include "common/random.h"
#include "wire/prepare_process.h"
#include "wire/transfer_engine.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t blob_bytes = 256 << 20;
constexpr std::size_t processes_queue_limit = 4096;
constexpr Duration processes_bound = std::chrono::seconds(60);
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
    return {std::make_shared<LinkEvents>(processes_queue_limit), std::make_shared<LinkEvents>(processes_queue_limit)};
}

double processor_seconds(int who) {
    rusage usage{};
    ::getrusage(who, &usage);
    const auto part = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return part(usage.ru_utime) + part(usage.ru_stime);
}

enum class PullTarget { memory, file };

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
        TransferLimits limits;
        limits.in_memory = 2 * blob_bytes;
        engine = std::make_unique<TransferEngine>(*link, queues.bulk, nothing, limits);
        connection = link->connect({.to = address});
        while (const auto event = queues.control->pop_for(processes_bound)) {
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

    Result<double> pull(const Digest& digest, const std::filesystem::path& file, PullTarget where) {
        const auto done = std::make_shared<BoundedQueue<Result<FetchedBlob>>>(1);
        const auto begin = real_now();
        Fetch fetch{.digest = digest, .bytes = blob_bytes, .destination = file};
        fetch.in_memory_up_to = where == PullTarget::memory ? blob_bytes : 0;
        engine->fetch(connection, fetch, [done](Result<FetchedBlob> result) { done->push(std::move(result)); });
        const auto result = done->pop_for(processes_bound);
        if (!result) {
            return fail(ErrorKind::timed_out, "stalled", "the pull did not end");
        }
        TRY(*result);
        return seconds(real_now() - begin);
    }
};

Result<Address> wait_for_pull_server(const BenchFolder& folder, Process& server) {
    BoundedQueue<int> nothing(1);
    for (const auto deadline = real_now() + processes_bound; real_now() < deadline && server.running();) {
        if (const auto text = read_file(folder.path / "address", 256)) {
            return parse_address(as_text(*text));
        }
        (void)nothing.pop_for(std::chrono::milliseconds(10));
    }
    return fail(ErrorKind::io, "cannot_start", "the serving process did not start: " + server.log_tail());
}

Status write_pull_credentials(const BenchFolder& folder) {
    TRY_ASSIGN(const auto authority, make_authority("bench", wall_clock_unix_s()));
    for (const auto& [role, name] : {std::pair(Role::coordinator, "server"), std::pair(Role::client, "client")}) {
        TRY_ASSIGN(const auto made, credentials(authority, role, name));
        TRY(make_private_folder(folder.path / name));
        TRY(save_credentials(folder.path / name, made));
    }
    return {};
}

}  // namespace

/// The serving side, in a process of its own: `causeway bench transfer-server --data FOLDER`, for bench_transfer only.
Result<std::vector<BenchRow>> serve_transfer(const BenchOptions& options) {
    const std::filesystem::path folder = options.data;
    TRY(prepare_process_for_links(node_need(),
                                  read_machine(std::filesystem::temp_directory_path(), wall_clock_unix_s())));
    TRY_ASSIGN(auto own, load_credentials(folder / "server"));
    const auto queues = make_queues();
    TRY_ASSIGN(const auto link,
               Link::start({.credentials = std::move(own), .listen = Address{"127.0.0.1", 0}}, queues));
    const auto blob = make_blob();
    const TransferEngine engine(*link, queues.bulk,
                                [&](const Digest&, const PeerIdentity&) -> Result<Blob> { return Blob(blob); });
    TRY(write_file_durably(folder / "address", as_bytes(Address{"127.0.0.1", link->port()}.text())));
    while (const auto event = queues.control->pop_for(processes_bound)) {
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
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY(prepare_process_for_links(node_need(), read_machine(folder.path, wall_clock_unix_s())));
    TRY(write_pull_credentials(folder));
    TRY_ASSIGN(auto server,
               Process::start({own_path().string(), "bench", "transfer-server", "--data", folder.path.string()}, "",
                              folder.path / "server.log"));
    TRY_ASSIGN(const auto address, wait_for_pull_server(folder, server));
    const auto digest = sha256(*make_blob());
    std::vector<double> to_memory;
    std::vector<double> to_file;
    std::array<double, 2> processor{};  // both sides' seconds
    {
        Puller puller;
        TRY(puller.connect(folder, address));
        for (const auto where : {PullTarget::memory, PullTarget::file}) {
            const auto begin = processor_seconds(RUSAGE_SELF) + process_usage(server.pid()).cpu_seconds;
            for (int i = 0; i < pulls; ++i) {
                TRY_ASSIGN(const double time, puller.pull(digest, folder.path / fmt::format("pulled-{}", i), where));
                (where == PullTarget::memory ? to_memory : to_file).push_back(time);
            }
            processor[static_cast<std::size_t>(where)] =
                processor_seconds(RUSAGE_SELF) + process_usage(server.pid()).cpu_seconds - begin;
        }
    }
    server.stop();
    std::ranges::sort(to_memory);
    std::ranges::sort(to_file);
    const double gigabytes = 1e-9 * static_cast<double>(blob_bytes);
    const std::string both = "of both sides, the hash included";
    return std::vector{
        BenchRow{"pull of 256 MiB into memory, SHA-256 verified", gigabytes / to_memory[pulls / 2], "GB/s", "",
                 "1.25 or more"},
        BenchRow{"processor time of it", processor[0] / (gigabytes * pulls), "s/GB", both, "1.4 or less"},
        BenchRow{"pull of 256 MiB into a file, verified, flushed", gigabytes / to_file[pulls / 2], "GB/s", "", ""},
        BenchRow{"processor time of it", processor[1] / (gigabytes * pulls), "s/GB", both, ""}};
}

}  // namespace causeway::cli
