// A store that is not what was written: every flipped byte of its files is a refusal by name or does no harm, an older
// database is found out by the head beside it, and a repair brings back what the head has.
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "common/random.h"
#include "common/text.h"
#include "coordinator/audit_store.h"
#include "coordinator/enrolment_store.h"
#include "coordinator/store.h"
#include "coordinator/store_check.h"
#include "coordinator/store_repair.h"
#include "tests/temporary_folder.h"

namespace causeway::store_damage {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t damage_now_s = 1'800'000'000;
constexpr ExperimentId damaged_id = 3;

Result<Store> open_at(const fs::path& folder) {
    return Store::open(folder, {.unix_now = [] { return damage_now_s; }, .must_exist = true});
}

Digest model_of(std::uint32_t round) {
    return sha256("model " + std::to_string(round));
}

CertificateRecord certificate_of(const std::string& name) {
    return {sha256(name),        name, "client", to_bytes("key of " + name), to_bytes("DER of " + name), damage_now_s,
            damage_now_s + 1000, {}};
}

void persist(Store& store, std::vector<Persist> persists) {
    REQUIRE(store.execute(persists));
}

void commit(Store& store, std::uint32_t round) {
    SaveCommit commit{
        damaged_id, round, model_of(round), 10, {}, {"ann", "bob"}, Json::object().set("loss", 0.25 * round)};
    if (round > 0) {
        commit.participants = {{"ann", sha256("ann")}, {"bob", sha256("bob")}};
    }
    persist(store, {commit, SaveDecision{damaged_id, round + 1, "attempt", Json::object().set("node", "ann")}});
}

void enrol(Store& store, const std::string& name) {
    REQUIRE(EnrolmentStore(store.database()).adopt(certificate_of(name)));
}

std::string experiment_file(const std::string& rate) {
    return "[experiment]\nname = \"digits\"\n[train]\noptimizer_state = \"reset\"\nlearning_rate = " + rate + "\n";
}

/// What counts of a store, as one text: equal texts are equal histories. Epochs rise at each start.
std::string contents(Store& store) {
    const auto recovered = store.load();
    REQUIRE(recovered);
    std::string text;
    for (const auto& one : recovered->experiments) {
        text += fmt::format("{} {} {} {} {}\n", one.saved.name, one.saved.file, one.saved.state, one.saved.reason,
                            join(one.next_cohort, ","));
        for (const auto& decision : one.decisions) {
            text += decision.kind + decision.detail.dump() + "\n";
        }
        for (const auto& [node, last] : one.last_counted) {
            text += node + std::to_string(last.first) + last.second.hex() + "\n";
        }
        const auto rounds = store.rounds(one.saved.experiment, 0, 1000);
        REQUIRE(rounds);
        for (const auto& round : *rounds) {
            text += std::to_string(round.round) + round.model.hex() + round.summary.dump() + "\n";
        }
    }
    for (const auto& [node, datasets] : recovered->declared) {
        text += node + std::to_string(datasets.size()) + datasets.front().digest.hex() + "\n";
    }
    EnrolmentStore enrolment(store.database());
    const auto revoked = *enrolment.revoked();
    for (const auto& fingerprint : revoked) {
        text += "revoked " + fingerprint.hex() + "\n";
    }
    const auto tokens = *enrolment.tokens();
    for (const auto& token : tokens) {
        text += token.name + token.role + "\n";
    }
    const auto nodes = *enrolment.nodes();
    for (const auto& node : nodes) {
        text += node.name + node.fingerprint.hex() + node.role + "\n";
    }
    return text;
}

void copy_folder(const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::create_directory(to);
    for (const auto* name : {"coordinator.db", "coordinator.db-wal", "coordinator.head"}) {
        if (fs::exists(from / name)) {
            fs::copy_file(from / name, to / name);
        }
    }
}

void flip(const fs::path& file, std::uint64_t at, unsigned char mask = 0x10) {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(static_cast<std::streamoff>(at));
    const auto was = static_cast<unsigned char>(bytes.get());
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(static_cast<char>(was ^ mask));
}

/// A life with a first part in the database and a second in its log, as a kill leaves it. The second part: rounds 3 to
/// 6, an enrolment, two revocations, the end of another experiment.
struct Life {
    TemporaryFolder folder;
    fs::path killed = folder.path / "killed";
    std::string whole;
    std::uint64_t epoch = 0;

    Life() {
        const auto state = folder.path / "state";
        fs::create_directory(state);
        {
            auto store = *Store::open(state, {.unix_now = [] { return damage_now_s; }});
            persist(store, {SaveExperiment{2, "first", experiment_file("0.1"), "running", "", "operator"},
                            SaveExperiment{damaged_id, "digits", experiment_file("0.2"), "running", "", "operator"},
                            SaveDeclaration{"ann", {{"digits", sha256("data"), 100, {8, 8}, 10, {}}}}});
            for (std::uint32_t round = 0; round <= 2; ++round) {
                commit(store, round);
            }
            enrol(store, "mallory");
        }
        auto store = *open_at(state);
        for (std::uint32_t round = 3; round <= 6; ++round) {
            commit(store, round);
        }
        enrol(store, "carol");
        enrol(store, "dave");
        REQUIRE(EnrolmentStore(store.database()).revoke("mallory", damage_now_s, "alice"));
        REQUIRE(EnrolmentStore(store.database()).revoke("dave", damage_now_s, "alice"));
        REQUIRE(EnrolmentStore(store.database())
                    .add_token({sha256("secret"), "erin", "client", damage_now_s + 100}, damage_now_s));
        persist(store, {SaveExperiment{2, "first", experiment_file("0.1"), "succeeded", "", "operator"}});
        whole = contents(store);
        epoch = store.epoch();
        copy_folder(state, killed);
    }
};

std::uint64_t tries(std::uint64_t usual, std::uint64_t many) {
    return std::getenv("CAUSEWAY_LONG") != nullptr ? many : usual;
}

}  // namespace

TEST_CASE("a killed store opens as it was, and a flipped byte in its log is refused with what it would lose",
          "[unit][store][damage]") {
    Life life;
    const auto copy = life.folder.path / "copy";
    copy_folder(life.killed, copy);
    {
        auto store = open_at(copy);
        REQUIRE(store);
        CHECK(contents(*store) == life.whole);
    }

    copy_folder(life.killed, copy);
    flip(copy / "coordinator.db-wal", 40'000);
    const auto before = read_file(copy / "coordinator.db-wal", 1 << 24);
    const auto refused = open_at(copy);
    REQUIRE(!refused);
    CHECK(refused.error().code == "store_behind");
    for (const auto* act :
         {"to 6 of experiment 3", "the enrolment of carol", "the revocation of mallory", "the revocation of dave",
          "the end of first (succeeded)", "the token of erin", "--repair"}) {
        CHECK_THAT(refused.error().message, Catch::Contains(act));
    }
    CHECK(*read_file(copy / "coordinator.db-wal", 1 << 24) == *before);  // evidence stays

    const auto said = repair_store(copy, damage_now_s);
    REQUIRE(said);
    CHECK_THAT(join(*said, "\n"), Catch::Contains("the revocation of mallory"));
    auto repaired = open_at(copy);
    REQUIRE(repaired);
    CHECK(contents(*repaired) == life.whole);
    CHECK(repaired->epoch() > life.epoch);
    CHECK_THAT(AuditStore(repaired->database()).entries_after(0, 100)->back().entry,
               Catch::Contains("federation.repaired"));
    CHECK(AuditStore(repaired->database()).verify());
}

TEST_CASE("one byte flipped anywhere in a stopped store's files: refused by name, or as it was",
          "[unit][store][damage]") {
    Life life;
    const auto copy = life.folder.path / "copy";
    const auto seed = std::getenv("CAUSEWAY_SEED");
    RandomStream random({.seed = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 7, .purpose = "flips"});
    const char* files[] = {"coordinator.db", "coordinator.db-wal", "coordinator.head"};
    std::map<std::string, int> outcomes;
    for (std::uint64_t i = 0; i < tries(60, 2000); ++i) {
        const auto* file = files[i % 3];
        copy_folder(life.killed, copy);
        // Half of them after a clean stop, where all is in the database.
        if (i % 2 == 1) {
            { REQUIRE(open_at(copy)); }
            if (!fs::exists(copy / file)) {
                continue;
            }
        }
        const auto size = fs::file_size(copy / file);
        const auto at = i % 4 == 0 ? random.below(std::min<std::uint64_t>(size, 600)) : random.below(size);
        const auto mask = static_cast<unsigned char>(1 + random.below(255));
        INFO(file << " byte " << at << " mask " << int{mask} << " try " << i);
        flip(copy / file, at, mask);
        auto store = open_at(copy);
        if (store) {
            CHECK(contents(*store) == life.whole);
            CHECK(store->epoch() > life.epoch);
            ++outcomes["whole"];
            continue;
        }
        ++outcomes[store.error().code];
        INFO(store.error().message);
        CHECK((store.error().kind == ErrorKind::corrupt || store.error().kind == ErrorKind::unsupported));
        // What a repair makes of it is all that there was, or is refused again.
        if (const auto repaired = repair_store(copy, damage_now_s); repaired && store.error().code == "store_behind") {
            auto again = open_at(copy);
            REQUIRE(again);
            CHECK(contents(*again) == life.whole);
            CHECK(again->epoch() > life.epoch);
        }
    }
    CHECK(outcomes["store_behind"] > 0);
    CHECK(outcomes["whole"] > 0);
}

TEST_CASE("a changed row is refused with its experiment's name, and a repair fails that experiment alone",
          "[unit][store][damage]") {
    Life life;
    {
        auto store = *open_at(life.killed);
        store.database().set_watch(nullptr);  // as a byte on the disk would, without a word to the sums
        REQUIRE(store.database().run_script("UPDATE experiments SET file = replace(file, '0.2', '0.5') WHERE id = 3"));
    }
    const auto refused = open_at(life.killed);
    REQUIRE(!refused);
    CHECK(refused.error().code == "store_damaged");
    CHECK_THAT(refused.error().message, Catch::Contains("experiments of experiment 3"));

    fs::remove(life.killed / "coordinator.head");  // which has no second copy of that row in any case
    REQUIRE(repair_store(life.killed, damage_now_s));
    auto store = open_at(life.killed);
    REQUIRE(store);
    const auto recovered = *store->load();
    CHECK(recovered.experiments[0].saved.state == "succeeded");
    CHECK(recovered.experiments[1].saved.state == "failed");
    CHECK_THAT(recovered.experiments[1].saved.reason, Catch::Contains("store_damaged"));
}

TEST_CASE("damaged identities are not mended: they need a backup", "[unit][store][damage]") {
    Life life;
    {
        auto store = *open_at(life.killed);
        store.database().set_watch(nullptr);
        REQUIRE(store.database().run_script("UPDATE certificates SET revoked = NULL WHERE name = 'mallory'"));
        REQUIRE(store.database().run_script("UPDATE certificates SET role = 'operator' WHERE name = 'carol'"));
    }
    CHECK(open_at(life.killed).error().code == "store_damaged");
    CHECK(repair_store(life.killed, damage_now_s).error().code == "store_damaged");
    CHECK(open_at(life.killed).error().code == "store_damaged");
}

TEST_CASE("a database that was put back by hand is refused; repaired, its epoch is above and the revoked stay out",
          "[unit][store][damage]") {
    Life life;
    const auto old = life.folder.path / "old";
    copy_folder(life.killed, old);
    { REQUIRE(open_at(old)); }
    {
        auto store = *open_at(life.killed);
        REQUIRE(EnrolmentStore(store.database()).revoke("carol", damage_now_s, "alice"));
        persist(store, {SaveExperiment{9, "later", experiment_file("0.3"), "running", "", "operator"}});
        commit(store, 7);
    }
    { REQUIRE(open_at(life.killed)); }  // the head begins with the state
    fs::copy_file(old / "coordinator.db", life.killed / "coordinator.db", fs::copy_options::overwrite_existing);
    const auto refused = open_at(life.killed);
    REQUIRE(!refused);
    CHECK(refused.error().code == "store_behind");
    CHECK_THAT(refused.error().message, Catch::Contains("round 7 of experiment 3") &&
                                            Catch::Contains("the revocation of carol") &&
                                            Catch::Contains("the submission of later"));
    REQUIRE(repair_store(life.killed, damage_now_s));
    auto store = open_at(life.killed);
    REQUIRE(store);
    CHECK(store->epoch() > life.epoch + 2);
    CHECK(EnrolmentStore(store->database()).revoked()->contains(sha256("carol")));
    const auto recovered = *store->load();
    CHECK(recovered.experiments.back().saved.experiment == 9);  // its number is not given again
    CHECK(recovered.experiments.back().saved.state == "failed");
    CHECK(EnrolmentStore(store->database()).tokens()->empty());
}

TEST_CASE("a head that is missing, cut or damaged begins anew beside a whole store", "[unit][store][damage]") {
    Life life;
    const auto copy = life.folder.path / "copy";
    const auto head = copy / "coordinator.head";
    copy_folder(life.killed, copy);
    SECTION("missing") {
        fs::remove(head);
    }
    SECTION("cut in its last record, as after a power cut") {
        fs::resize_file(head, fs::file_size(head) - 10);
    }
    SECTION("cut in half") {
        fs::resize_file(head, fs::file_size(head) / 2);
    }
    SECTION("empty") {
        fs::resize_file(head, 0);
    }
    SECTION("damaged in the middle") {
        flip(head, fs::file_size(head) / 2);
    }
    auto store = open_at(copy);
    REQUIRE(store);
    CHECK(contents(*store) == life.whole);
    const auto anew = *read_head(copy);
    CHECK(!anew.damaged);
    CHECK(!anew.torn);
    CHECK(anew.records.front().kind == HeadRecord::Kind::state);
    CHECK(anew.last().sequence == (*stored_head(store->database()))->sequence);
}

TEST_CASE("the head is bounded: a folded log lets it begin anew", "[unit][store][damage]") {
    const TemporaryFolder folder;
    auto store = *Store::open(folder.path, {.unix_now = [] { return damage_now_s; }});
    persist(store, {SaveExperiment{damaged_id, "digits", experiment_file("0.2"), "running", "", "operator"}});
    std::uint64_t largest = 0;
    for (std::uint32_t round = 1; round <= 300; ++round) {
        persist(store,
                {SaveDecision{damaged_id, round, "attempt", Json::object().set("text", std::string(30'000, 'x'))}});
        largest = std::max(largest, fs::file_size(folder.path / "coordinator.head"));
    }
    CHECK(largest < 5'000'000);
    CHECK(fs::file_size(folder.path / "coordinator.head") < largest);
}

TEST_CASE("records of a head are read back, and none is made of noise", "[unit][store][damage]") {
    HeadRecord record{
        .kind = HeadRecord::Kind::transaction,
        .sequence = 7,
        .chain = sha256("chain"),
        .total = sha256("total"),
        .changes = {{"t", {}, {std::int64_t{-1}, 0.5, std::string("text"), to_bytes("CWHD"), StoredValue{}}}}};
    const auto bytes = encode_head_record(record);
    const auto back = decode_head(bytes);
    REQUIRE(back.records.size() == 1);
    CHECK(encode_head_record(back.last()) == bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CHECK(decode_head(ByteView(bytes).first(size)).empty());
    }
    RowSum sum;
    sum.add(sha256("a"));
    sum.add(sha256("b"));
    sum.subtract(sha256("a"));
    RowSum only;
    only.add(sha256("b"));
    CHECK(sum == only);
}

}  // namespace causeway::store_damage
