#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/files/manifest.hpp"

namespace hetseq {

/// RUN/checkpoints: one folder for each checkpoint, named by its update. A folder is complete or
/// does not exist. The members that write throw IoError; one rank of the job calls `put_back`,
/// `remove_leftovers`, `set_aside`, `remove_all`, `commit` and `prune`.
class CheckpointFolder {
public:
    struct Entry {
        std::int64_t update = 0;  // done when it was taken
        std::filesystem::path path;
    };

    /// `start`: what tells this start of the run from any other, in the names of checkpoints that
    /// are not complete. `may_change` is called before anything is renamed or removed, and throws
    /// where the folder belongs to another job.
    explicit CheckpointFolder(
        std::filesystem::path path,
        std::string start = {},
        std::function<void()> may_change = [] {})
        : path_{std::move(path)}, start_{std::move(start)}, may_change_{std::move(may_change)} {}

    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path of_update(std::int64_t update) const;
    /// The newest first; none if there is no such folder. If a process died while it replaced a
    /// checkpoint, the former one is listed under its temporary name.
    std::vector<Entry> list() const;

    /// Makes the folder itself, but none above it, with a mark that lasts until the first `commit`.
    void make() const;
    /// Whether no checkpoint was committed since `make`. An empty folder alone does not tell:
    /// somebody may have removed them.
    bool has_saved_nothing() const;
    /// The folder into which the files of `update` are written first; made if it is not there.
    std::filesystem::path begin(std::int64_t update) const;
    /// Marks the folder that `begin` made as one of those that the clock asks for.
    void mark_timed(std::int64_t update) const;
    /// The clock alone does not ask for that checkpoint any more.
    void unmark_timed(std::int64_t update) const;
    /// Gives the folder that `begin` made a manifest and its final name; both are on disk when this
    /// returns. A former checkpoint of that update is removed. At any instant, one of the two is
    /// listed.
    void commit(std::int64_t update, const Manifest& manifest) const;
    /// Removes what `begin` made.
    void abandon(std::int64_t update) const noexcept;
    /// Removes all checkpoints but that of `best_update`, the two newest of those that were marked
    /// as timed, and the `keep_last` newest of the others; 0 keeps all of these.
    void prune(std::int64_t keep_last, std::int64_t best_update) const;
    /// A checkpoint may have been moved away for another one that was never completed. Gives it its
    /// name back if it is complete. Only the process that opens the run for writing calls this.
    void put_back() const;
    /// Removes what earlier starts left unfinished.
    void remove_leftovers() const;
    /// Gives checkpoints beyond `update` another name, under which nobody lists them: the run goes
    /// on from that update and would replace them. Returns these names.
    std::vector<std::filesystem::path> set_aside(std::int64_t update) const;
    /// Removes everything that bears a name of a checkpoint, complete or not.
    void remove_all() const;
    /// Throws what `may_change` does.
    void require_change() const { may_change_(); }

private:
    std::filesystem::path temporary(std::int64_t update) const;
    std::filesystem::path aside(std::int64_t update) const;
    void replace(std::int64_t update) const;
    void rename(const std::filesystem::path& from, const std::filesystem::path& to) const;
    void remove(const std::filesystem::path& folder) const;
    bool clear(const std::filesystem::path& folder) const;
    void retire(const std::filesystem::path& checkpoint) const;
    std::vector<std::string> names() const;

    std::filesystem::path path_;
    std::string start_;
    std::function<void()> may_change_;
};

/// Whether a checkpoint was saved since the clock asked for it, and for nothing else.
bool is_timed(const std::filesystem::path& checkpoint);

/// The checkpoint `path` itself, or those of the run `path`, the newest first; empty if it is
/// neither.
std::vector<std::filesystem::path> checkpoints_at(const std::filesystem::path& path);

}  // namespace hetseq
