#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace hetseq {

/// A folder of files that appear together. They are written into a hidden folder beside it, which
/// `commit` renames. Without `commit` nothing is left behind and a former folder stays as it was.
/// All members throw IoError.
class StagedFolder {
public:
    /// Makes the hidden folder, and those above it.
    explicit StagedFolder(const std::filesystem::path& target);
    ~StagedFolder();
    StagedFolder(const StagedFolder&) = delete;
    StagedFolder& operator=(const StagedFolder&) = delete;

    /// The files are written here, each completely and to disk (`AtomicFile`).
    const std::filesystem::path& path() const noexcept { return staged_; }

    /// If the target is a folder already, the files move into it. Files of the same names there are
    /// replaced, those of the names `outdated` are removed, and all others stay.
    void commit(const std::set<std::string>& outdated = {});

private:
    void move_files(const std::set<std::string>& outdated) const;

    std::filesystem::path target_, staged_;
};

}  // namespace hetseq
