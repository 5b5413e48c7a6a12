// A peer with a valid certificate that lies, by the real wire library; tests/e2e/hostile_test.py drives it.
//
//   attacker TOKEN lies      stale and invented leases, replays, absurd numbers, words that only a coordinator may say
//   attacker TOKEN member    a member of the cohort whose every offer is wrong: giants, garbage, other shapes, NaN
//   attacker TOKEN floods    as many refused requests and useless words as get through in a few seconds
//   attacker TOKEN bulk      bulk connections for sessions of others, pulls of what is not there, absurd credits
//
// It ends with 0 when it has said everything, or has been shown the door; it prints what it was told.
#include <array>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "compression/update_format.h"
#include "wire/join.h"
#include "wire/transfer_engine.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
constexpr auto huge32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t giant_bytes = std::uint64_t{1} << 61;

class Attacker {
public:
    Attacker(Credentials credentials, Address address, std::vector<DatasetDeclaration> datasets)
        : address_(std::move(address)) {
        auto started = Link::start({.credentials = std::move(credentials)}, queues_);
        ASSERT(started.has_value());
        link_ = *std::move(started);
        connection_ = link_->connect({.to = address_});
        const auto opened = queues_.control->pop_for(30s);
        ASSERT(opened && std::holds_alternative<PeerOpened>(*opened));
        send(Hello{.software = "causeway " CAUSEWAY_VERSION, .datasets = std::move(datasets)});
        if (auto welcome = next<Welcome>(30s)) {
            session_ = welcome->session;
        }
    }
    void send(Message message) { link_->send(connection_, std::move(message)); }
    /// Nothing when the time is over or the connection closed.
    template <class Wanted>
    std::optional<Wanted> next(Duration within) {
        const auto end = real_now() + within;
        while (auto event = queues_.control->pop_for(end - real_now())) {
            if (const auto* closed = std::get_if<PeerClosed>(&*event); closed && closed->connection == connection_) {
                std::cout << "closed: " << closed->why.code << "\n";
                gone_ = true;
                return std::nullopt;
            }
            auto* message = std::get_if<PeerMessage>(&*event);
            if (auto* wanted = message ? std::get_if<Wanted>(&message->message) : nullptr) {
                return *wanted;
            }
        }
        return std::nullopt;
    }
    /// Serves each of these under its digest.
    void serve(const std::span<const Bytes> all) {
        std::map<Digest, std::shared_ptr<const Bytes>> blobs;
        for (const auto& bytes : all) {
            blobs.emplace(sha256(bytes), std::make_shared<const Bytes>(bytes));
        }
        engine_ = std::make_unique<TransferEngine>(
            *link_, queues_.bulk, [blobs](const Digest& digest, const PeerIdentity&) -> Result<Blob> {
                const auto found = blobs.find(digest);
                return found != blobs.end() ? Result<Blob>(Blob(found->second))
                                            : fail(ErrorKind::not_found, "not_found", "never heard of it");
            });
        engine_->attach(connection_, address_, session_);
        engine_->want(connection_);
    }
    [[nodiscard]] bool gone() const { return gone_; }
    [[nodiscard]] std::uint64_t session() const { return session_; }
    [[nodiscard]] Link& link() { return *link_; }
    [[nodiscard]] LinkEvents& bulk() { return *queues_.bulk; }
    [[nodiscard]] const Address& address() const { return address_; }

private:
    Address address_;
    LinkQueues queues_{std::make_shared<LinkEvents>(1024), std::make_shared<LinkEvents>(1024)};
    std::unique_ptr<Link> link_;
    std::unique_ptr<TransferEngine> engine_;
    ConnectionId connection_ = 0;
    std::uint64_t session_ = 0;
    bool gone_ = false;
};

void say_absurd_words(Attacker& attacker, const Lease& lease, const std::string& text) {
    const HeldUpdate boundless{lease.experiment, lease.round, {}, giant_bytes, -1, {1e308, huge, 1e308}, {}};
    attacker.send(Progress{lease, huge32, 1, std::numeric_limits<double>::quiet_NaN()});
    attacker.send(Offer{lease, boundless});
    attacker.send(Decline{lease, text, text});
    attacker.send(Welcome{});
    attacker.send(Counted{lease, {}});
    attacker.send(Committed{lease.experiment, lease.round, {}, true, {}});
    attacker.send(Dropped{lease, "silent", text});
    attacker.send(Ended{lease.experiment, "failed", text});
    attacker.send(Hello{.version_min = huge32, .software = text});
    attacker.send(Reply{.id = huge, .body = text});
}

/// Every lease near the real ones, again and again: others' members, rounds that were and will be.
void lie(Credentials credentials, const Address& address) {
    const std::string text(50'000, '\x01');
    for (int life = 0; life < 5; ++life) {  // shown the door, it comes back
        Attacker attacker(credentials, address, {});
        for (std::uint32_t round = 0; round < 40 && !attacker.gone(); ++round) {
            for (const auto& lease :
                 {Lease{1, 2, round, 0}, Lease{1, 2, round, 1}, Lease{huge, huge, huge32, huge32}}) {
                say_absurd_words(attacker, lease, round % 10 == 0 ? text : "");
            }
            (void)attacker.next<Dropped>(5ms);
        }
    }
}

Bytes wrong_tensors(std::vector<std::int64_t> shape, float value) {
    TensorTable table;
    const auto size = static_cast<std::uint64_t>(shape.front());
    table.tensors = {{"dense1.weight", DType::f32, Shape(shape.begin(), shape.end()), 0, ArenaKind::trainable, 0}};
    const std::vector<float> values(size, value);
    return encode_update(*parse_codec("dense"), make_update(table, {RangeSet::all(size), {}, {}}, {values, {}, {}}));
}

/// As a member: each round another lie about its update, under the right lease.
void betray(Credentials credentials, const Address& address, std::uint64_t examples) {
    Attacker attacker(std::move(credentials), address,
                      {{.name = "digits", .digest = {}, .examples = examples, .shape = {8, 8, 1}, .classes = 10}});
    const std::array<Bytes, 4> blobs{to_bytes("these are no parameters"), wrong_tensors({7}, 1.0F),
                                     wrong_tensors({64}, std::numeric_limits<float>::quiet_NaN()), Bytes(1 << 20)};
    attacker.serve(blobs);
    std::set<std::uint32_t> rounds;
    while (const auto assign = attacker.next<Assign>(30s)) {
        const auto& lease = assign->lease;
        const auto& blob = blobs[lease.round % blobs.size()];
        HeldUpdate held{.experiment = lease.experiment,
                        .round = lease.round,
                        .digest = sha256(blob),
                        .bytes = giant_bytes,
                        .weight = lease.round % 3 == 0 ? -5 : 3,
                        .metrics = {},
                        .start_model = assign->model};
        if (lease.round % 5 == 0) {
            attacker.send(Offer{lease, held});
        }
        held.bytes = blob.size();
        for (int replay = 0; replay < 3; ++replay) {
            attacker.send(Offer{lease, held});
        }
        rounds.insert(lease.round);
        const auto refused = attacker.next<Refused>(10s);
        std::cout << "round " << lease.round << ": " << (refused ? refused->code : "no answer") << std::endl;
        if (!refused || lease.round == assign->rounds) {
            break;
        }
    }
    std::cout << rounds.size() << " rounds\n";
}

void flood(Credentials credentials, const Address& address) {
    Attacker attacker(std::move(credentials), address, {});
    const std::string body(100'000, ' ');
    std::uint64_t sent = 0;
    for (const auto end = real_now() + 4s; real_now() < end && !attacker.gone();) {
        for (int i = 0; i < 32; ++i) {
            attacker.send(Request{.id = ++sent, .verb = "experiment.submit", .body = body});
            attacker.send(Progress{{1, 1, 1, 1}, 1, 1, 0});
        }
        while (const auto reply = attacker.next<Reply>(2s)) {
            if (reply->id == sent) {
                break;
            }
        }
    }
    std::cout << sent << " requests\n";
}

/// Bulk connections that claim sessions of others, and pulls of everything that is not there.
void pull(Credentials credentials, const Address& address) {
    Attacker attacker(std::move(credentials), address, {});
    std::vector<ConnectionId> own;
    for (std::uint64_t i = 0; i < 90; ++i) {
        const auto session = i % 3 == 0 ? attacker.session() : i % 3 == 1 ? attacker.session() - 1 : huge - i;
        const auto connection =
            attacker.link().connect({.to = address, .kind = ConnectionKind::bulk, .session = session});
        if (i % 3 == 0) {
            own.push_back(connection);
        }
    }
    for (std::uint64_t i = 0; i < 5000; ++i) {
        const auto connection = own[i % own.size()];
        attacker.link().send(connection, Pull{i, sha256(std::to_string(i)), huge, huge32});
        attacker.link().send(connection, Credit{i, huge32});
        attacker.link().send(connection, Chunk{i, giant_bytes, giant_bytes, Bytes(1000)});
    }
    const auto end = real_now() + 3s;
    std::uint64_t events = 0;
    while (attacker.bulk().pop_for(end - real_now())) {
        ++events;
    }
    std::cout << events << " events\n";
}

int run(const std::string& token_text, const std::string& attack) {
    const auto token = parse_token(token_text);
    ASSERT(token.has_value());
    const auto credentials = join_federation(*token, make_key(), [](std::string_view) {});
    ASSERT(credentials.has_value());
    const auto& address = token->addresses.front();
    if (attack == "lies") {
        lie(*credentials, address);
    } else if (attack == "member") {
        betray(*credentials, address, 300);
    } else if (attack == "floods") {
        flood(*credentials, address);
    } else if (attack == "bulk") {
        pull(*credentials, address);
    } else {
        return 2;
    }
    return 0;
}

}  // namespace
}  // namespace causeway

int main(int argc, char** argv) {
    return argc == 3 ? causeway::run(argv[1], argv[2]) : 2;
}
