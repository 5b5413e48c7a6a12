// Keeps the store's sums and its head in step with every transaction, whoever writes it.
//
// It hears each change of a row, brings the sums up to date inside the same transaction (row_sums.h), numbers it, and
// writes it to the head file once it is durable (head_file.h). A head that cannot be written (disk full) lags, which
// is allowed, and catches up with the state behind a later transaction. Thread: the store thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/head_file.h"
#include "coordinator/row_sums.h"

namespace causeway {

/// The one row of the table `head`.
struct StoredHead {
    std::uint64_t sequence = 0;
    Digest chain;
    Digest total;
};

/// nullopt: the store is of a format without it. errors: corrupt
Result<std::optional<StoredHead>> stored_head(Database& database);
/// As the table `sums` has them.
Result<PartSums> stored_sums(Database& database);
/// Inside a transaction: both tables anew. cost: a row per part
Status write_sums(Database& database, const PartSums& sums, const StoredHead& head);
/// The state as a record: epoch, revocations, experiments.
Result<HeadRecord> state_record(Database& database, const StoredHead& head);

class StoreJournal : public DatabaseWatch {
public:
    /// Of a store of the present format, checked before. `head_of`: the state folder; empty: without a head file, as
    /// for a copy that is being made. cost with a folder: 2 flushes
    static Result<std::unique_ptr<StoreJournal>> attach(Database& database, const std::filesystem::path& head_of);

    void changed(RowChange change) override;
    Status before_commit(Database& database) override;
    void committed(Database& database) override;
    void rolled_back() override;
    void folded(Database& database) override;

    [[nodiscard]] const StoredHead& head() const { return head_; }

private:
    void catch_up(Database& database);

    std::unique_ptr<HeadFile> file_;
    SummedTables tables_;
    PartSums sums_;
    StoredHead head_;
    bool lags_ = false;  // the file lacks a transaction: it has to begin anew
    // of the open transaction
    std::vector<RowChange> changes_;
    PartSums next_sums_;
    StoredHead next_;
};

}  // namespace causeway
