#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hetseq/util/manifest.hpp"

namespace hetseq {

/// RUN/checkpoints: one folder a checkpoint, named by its update, complete or not there at all.
/// The members that write throw IoError; one rank of the job calls `put_back`, `clean`, `commit`
/// and `prune`.
class CheckpointFolder {
public:
    struct Entry {
        std::int64_t update = 0;  // done when it was taken
        std::filesystem::path path;
    };

    explicit CheckpointFolder(std::filesystem::path path) : path_{std::move(path)} {}

    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path of_update(std::int64_t update) const;
    /// The newest first; none where there is no such folder. Where a process died while it replaced
    /// a checkpoint, the former one is listed under the name that it had meanwhile.
    std::vector<Entry> list() const;

    /// The folder into which the files of `update` are written first; made if it is not there.
    std::filesystem::path begin(std::int64_t update) const;
    /// Gives what `begin` made a manifest and its final name, on disk when this returns. A former
    /// checkpoint of that update goes; at any instant one of both is listed.
    void commit(std::int64_t update, const Manifest& manifest) const;
    /// Removes what `begin` made.
    void abandon(std::int64_t update) const noexcept;
    /// Removes all but the `keep_last` newest and that of `best_update`; 0 keeps all.
    void prune(std::int64_t keep_last, std::int64_t best_update) const;
    /// Gives checkpoints that were moved away for others, which then never came, their names again,
    /// if they are whole. For the one process that opens the run to write.
    void put_back() const;
    /// Removes what earlier runs left unfinished, and checkpoints beyond `update`; -1: all.
    void clean(std::int64_t update) const;

private:
    std::filesystem::path temporary(std::int64_t update) const;
    std::filesystem::path aside(std::int64_t update) const;
    void replace(std::int64_t update) const;

    std::filesystem::path path_;
};

/// The checkpoint that `path` is, or those of the run in it, the newest first; none where it is
/// neither.
std::vector<std::filesystem::path> checkpoints_at(const std::filesystem::path& path);

}  // namespace hetseq
