#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/util/manifest.hpp"

namespace hetseq {

/// RUN/checkpoints: one folder for each checkpoint, named by its update. A folder is complete or
/// does not exist. The members that write throw IoError; one rank of the job calls `put_back`,
/// `clean`, `commit` and `prune`.
class CheckpointFolder {
public:
    struct Entry {
        std::int64_t update = 0;  // done when it was taken
        std::filesystem::path path;
    };

    explicit CheckpointFolder(std::filesystem::path path) : path_{std::move(path)} {}

    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path of_update(std::int64_t update) const;
    /// The newest first; none if there is no such folder. If a process died while it replaced a
    /// checkpoint, the former one is listed under its temporary name.
    std::vector<Entry> list() const;

    /// The folder into which the files of `update` are written first; made if it is not there.
    std::filesystem::path begin(std::int64_t update) const;
    /// Gives the folder that `begin` made a manifest and its final name; both are on disk when this
    /// returns. A former checkpoint of that update is removed. At any instant, one of the two is
    /// listed.
    void commit(std::int64_t update, const Manifest& manifest) const;
    /// Removes what `begin` made.
    void abandon(std::int64_t update) const noexcept;
    /// Removes all checkpoints but the `keep_last` newest and that of `best_update`; 0 keeps all.
    void prune(std::int64_t keep_last, std::int64_t best_update) const;
    /// A checkpoint may have been moved away for another one that was never completed. Gives it its
    /// name back if it is complete. Only the process that opens the run for writing calls this.
    void put_back() const;
    /// Removes what earlier runs left unfinished, and checkpoints beyond `update`; -1: all.
    void clean(std::int64_t update) const;

private:
    std::filesystem::path temporary(std::int64_t update) const;
    std::filesystem::path aside(std::int64_t update) const;
    void replace(std::int64_t update) const;

    std::filesystem::path path_;
};

/// The checkpoint `path` itself, or those of the run `path`, the newest first; empty if it is
/// neither.
std::vector<std::filesystem::path> checkpoints_at(const std::filesystem::path& path);

}  // namespace hetseq
