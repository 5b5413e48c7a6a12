// The benchmark of streams between two node processes on loopback: how long a step waits for its hops, how much goes
// through, and what it costs in bytes and processor time.
#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>

#include "cli/bench.h"
#include "cli/bench_folder.h"
#include "cli/local_federation.h"
#include "wire/prepare_process.h"
#include "wire/streams.h"

namespace causeway::cli {
namespace {

constexpr std::size_t streams_queue_limit = 256;
constexpr Duration streams_bound = std::chrono::seconds(30);
constexpr std::uint64_t streams_experiment = 1;
constexpr std::size_t warm_up = 50;
constexpr std::size_t round_trips = 1000;
constexpr std::size_t flood_messages = 512;

StreamData make_message(std::size_t size, std::uint32_t batch) {
    return {{1, streams_experiment, 1, 1}, 0, 0, 0, batch, 0, 1, 0, size, Bytes(size, std::byte{7})};
}

Status write_stream_credentials(const BenchFolder& folder) {
    TRY_ASSIGN(const auto authority, make_authority("bench", wall_clock_unix_s()));
    for (const auto& [role, name] : {std::pair(Role::host, "host"), std::pair(Role::client, "client")}) {
        Credentials made{{authority.federation, role, name}, make_key(), {}, authority.certificate};
        TRY_ASSIGN(made.certificate,
                   issue_certificate(authority, made.key.public_key, made.identity, wall_clock_unix_s()));
        TRY(make_private_folder(folder.path / name));
        TRY(save_credentials(folder.path / name, made));
    }
    return {};
}

/// One node: its link and streams.
struct StreamSide {
    std::shared_ptr<LinkEvents> control = std::make_shared<LinkEvents>(streams_queue_limit);
    std::shared_ptr<LinkEvents> events = std::make_shared<LinkEvents>(streams_queue_limit);
    BoundedQueue<Error> lost{16};
    std::unique_ptr<Link> link;
    std::unique_ptr<Streams> streams;

    Status start(const std::filesystem::path& state, std::optional<Address> listen,
                 std::function<void(const std::string&, StreamData)> deliver) {
        TRY(prepare_process_for_links(node_need(),
                                      read_machine(std::filesystem::temp_directory_path(), wall_clock_unix_s())));
        TRY_ASSIGN(auto own, load_credentials(state));
        TRY_ASSIGN(link, Link::start({.credentials = std::move(own), .listen = std::move(listen)},
                                     {.control = control, .bulk = nullptr, .streams = events}));
        streams = std::make_unique<Streams>(
            *link, events,
            StreamCallbacks{std::move(deliver), [this](const std::string&, Error why) { (void)lost.try_push(why); }});
        return {};
    }
    Status meet(const std::filesystem::path& peer, std::vector<std::string> addresses) {
        TRY_ASSIGN(const auto its, load_credentials(peer));
        streams->roster(
            {{{its.identity.node, std::string(to_string(its.identity.role)), certificate_fingerprint(its.certificate),
               streams_experiment, std::move(addresses), 60'000}}},
            real_now());
        return {};
    }
};

Result<std::string> wait_for_stream_server(const BenchFolder& folder, Process& server) {
    BoundedQueue<int> nothing(1);
    for (const auto deadline = real_now() + streams_bound; real_now() < deadline && server.running();) {
        if (const auto text = read_file(folder.path / "address", 256)) {
            return std::string(as_text(*text));
        }
        (void)nothing.pop_for(std::chrono::milliseconds(10));
    }
    return fail(ErrorKind::io, "cannot_start", "the serving process did not start: " + server.log_tail());
}

double own_processor_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto part = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return part(usage.ru_utime) + part(usage.ru_stime);
}

struct Meter {
    StreamSide client;
    BoundedQueue<StreamData> answers{streams_queue_limit};
    std::vector<BenchRow> rows;

    Status wait_for_answer() {
        if (answers.pop_for(streams_bound)) {
            return {};
        }
        const auto why = client.lost.try_pop();
        return why ? fail(*why) : fail(ErrorKind::timed_out, "bench_failed", "the other side does not answer");
    }
    /// Median and 95th percentile of sending so much and getting as much back, in microseconds.
    Result<std::pair<double, double>> round_trip(std::size_t size) {
        std::vector<double> times;
        for (std::size_t i = 0; i < warm_up + round_trips; ++i) {
            auto message = make_message(size, 1);
            const auto begin = real_now();
            client.streams->send("host", std::move(message));
            TRY(wait_for_answer());
            if (i >= warm_up) {
                times.push_back(1e6 * seconds(real_now() - begin));
            }
        }
        std::ranges::sort(times);
        return std::pair(times[times.size() / 2], times[times.size() * 95 / 100]);
    }
    Status measure_round_trips() {
        for (const std::size_t size : {std::size_t{1} << 10, std::size_t{64} << 10, std::size_t{1} << 20}) {
            TRY_ASSIGN(const auto times, round_trip(size));
            rows.push_back({fmt::format("round trip of {} KiB, and as much back", size >> 10), times.first, "us",
                            fmt::format("95th percentile {:.0f} us", times.second),
                            size == 64 << 10 ? "500 or less" : ""});
        }
        return {};
    }
    /// One way; the last message is answered. `server` counts too in processor time.
    Status measure_flood(std::size_t size, int server) {
        const auto bytes = static_cast<double>(size * flood_messages);
        const auto sent = client.streams->traffic().sent;
        const auto processor = own_processor_seconds() + process_usage(server).cpu_seconds;
        const auto begin = real_now();
        for (std::size_t i = 0; i < flood_messages; ++i) {
            client.streams->send("host", make_message(size, i + 1 == flood_messages ? 1 : 0));
        }
        TRY(wait_for_answer());
        const auto time = seconds(real_now() - begin);
        const auto used = own_processor_seconds() + process_usage(server).cpu_seconds - processor;
        const auto wire = static_cast<double>(client.streams->traffic().sent - sent);
        rows.push_back({fmt::format("one way, messages of {} KiB", size >> 10), 1e-6 * bytes / time, "MB/s", "", ""});
        rows.push_back({"processor time of it", 1e9 * used / bytes, "s/GB", "of both sides", ""});
        rows.push_back({"bytes on the wire beyond the payload", 100 * (wire - bytes) / bytes, "%", "", "1 or less"});
        return {};
    }
};

}  // namespace

/// The answering side, in a process of its own: `causeway bench streams-server --data FOLDER`, for bench_streams only.
/// A message of batch 1 is sent back as it is, but for a flood's, which is answered shortly.
Result<std::vector<BenchRow>> serve_streams(const BenchOptions& options) {
    const std::filesystem::path folder = options.data;
    StreamSide host;
    bool flood = false;  // the streams' thread only
    const auto deliver = [&](const std::string& node, StreamData message) {
        if (message.batch == 1) {
            const auto size = flood ? std::size_t{1} : message.payload.size();
            message.payload.resize(size);
            host.streams->send(node, std::move(message));
        }
        flood = message.batch == 0;
    };
    TRY(host.start(folder / "host", Address{"127.0.0.1", 0}, deliver));
    TRY(host.meet(folder / "client", {}));
    TRY(write_file_durably(folder / "address", as_bytes(Address{"127.0.0.1", host.link->port()}.text())));
    (void)host.lost.pop_for(2 * streams_bound);  // the other side has ended
    return std::vector<BenchRow>{};
}

namespace {

/// Two processes that have met, for as long as a measurement takes.
Status with_peer(const std::function<Status(Meter&, int server)>& measure) {
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY(write_stream_credentials(folder));
    TRY_ASSIGN(auto server,
               Process::start({own_path().string(), "bench", "streams-server", "--data", folder.path.string()}, "",
                              folder.path / "server.log"));
    TRY_ASSIGN(const auto address, wait_for_stream_server(folder, server));
    Meter meter;
    TRY(meter.client.start(folder.path / "client", std::nullopt,
                           [&](const std::string&, StreamData message) { meter.answers.push(std::move(message)); }));
    TRY(meter.client.meet(folder.path / "host", {address}));
    const auto measured = measure(meter, server.pid());
    meter.client.streams.reset();
    meter.client.link.reset();
    server.stop();
    return measured;
}

}  // namespace

Result<std::vector<BenchRow>> bench_streams(const BenchOptions&) {
    std::vector<BenchRow> rows;
    const auto measure = [&](Meter& meter, int server) -> Status {
        TRY(meter.measure_round_trips());
        TRY(meter.measure_flood(64 << 10, server));
        TRY(meter.measure_flood(1 << 20, server));
        rows = std::move(meter.rows);
        return {};
    };
    TRY(with_peer(measure));
    return rows;
}

Result<double> stream_round_trip(std::size_t bytes) {
    double median = 0;
    const auto measure = [&](Meter& meter, int) -> Status {
        TRY_ASSIGN(const auto times, meter.round_trip(bytes));
        median = 1e-6 * times.first;
        return {};
    };
    TRY(with_peer(measure));
    return median;
}

}  // namespace causeway::cli
