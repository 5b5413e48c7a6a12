// Stores that older builds wrote open in this one, with everything that was in them. Each file of formats/ is the dump
// of a store that the last build of that format left when it was killed in the middle of a run.
#include "common/file.h"
#include "coordinator/audit_store.h"
#include "coordinator/enrolment_store.h"
#include "coordinator/store.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

TEST_CASE("a store of every older format opens with its experiments, members and audit log", "[unit][store]") {
    const std::filesystem::path formats = std::filesystem::path(CAUSEWAY_SOURCE_ROOT) / "tests/coordinator/formats";
    const auto dump = read_file(formats / "format-1.sql", 1 << 20);
    REQUIRE(dump.has_value());
    const TemporaryFolder folder;
    {
        auto database = Database::open(folder.path / "coordinator.db", {});
        REQUIRE(database.has_value());
        REQUIRE(database->run_script(std::string(as_text(*dump))));
    }
    auto store = Store::open(folder.path, {.must_exist = true});
    REQUIRE(store.has_value());
    CHECK(std::filesystem::exists(folder.path / "coordinator.db.format-1"));
    CHECK(store->epoch() == 2);
    const auto recovered = store->load();
    REQUIRE(recovered.has_value());
    REQUIRE(recovered->experiments.size() == 2);
    CHECK(recovered->experiments[0].saved.state == "succeeded");
    CHECK(recovered->experiments[1].saved.state == "running");
    CHECK(recovered->experiments[1].rounds.back().round == 2);
    CHECK(*AuditStore(store->database()).verify() == 8);
    CHECK(EnrolmentStore(store->database()).nodes()->size() == 3);
    CHECK(EnrolmentStore(store->database()).tokens()->size() == 1);
}

TEST_CASE("a store that had to be there and is missing or empty is damaged, not new", "[unit][store]") {
    const TemporaryFolder folder;
    CHECK(Store::open(folder.path, {.must_exist = true}).error().code == "store_lost");
    CHECK_FALSE(std::filesystem::exists(folder.path / "coordinator.db"));
    REQUIRE(write_file_durably(folder.path / "coordinator.db", {}));
    CHECK(Store::open(folder.path, {.must_exist = true}).error().kind == ErrorKind::corrupt);
}

}  // namespace
}  // namespace causeway
