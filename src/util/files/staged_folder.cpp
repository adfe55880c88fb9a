#include "hetseq/util/files/staged_folder.hpp"

#include <system_error>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

void require_done(const std::error_code& error, const std::string& problem) {
    if (error)
        throw IoError(problem, error.message(), "check the folder's permissions and free space");
}

// Without the blank name behind a last '/'.
fs::path plain(const fs::path& path) {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error).lexically_normal();
    require_done(error, "cannot find " + path.string());
    return whole.has_filename() ? whole : whole.parent_path();
}

std::vector<fs::path> files_in(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> files;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error))
        files.push_back(entry->path().filename());
    require_done(error, "cannot list " + folder.string());
    return files;
}

}  // namespace

StagedFolder::StagedFolder(const fs::path& target)
    : target_{plain(target)},
      staged_{target_.parent_path() / ("." + target_.filename().string() + ".unfinished")} {
    std::error_code error;
    fs::remove_all(staged_, error);  // of a process that died
    fs::create_directories(staged_, error);
    require_done(error, "cannot make the folder " + staged_.string());
}

StagedFolder::~StagedFolder() {
    std::error_code ignored;
    fs::remove_all(staged_, ignored);
}

void StagedFolder::commit(const std::set<std::string>& outdated) {
    std::error_code error;
    if (fs::exists(target_, error))
        move_files(outdated);
    else
        fs::rename(staged_, target_, error);
    require_done(error, "cannot name the folder " + target_.string());
    sync_folder(target_);
    sync_folder(target_.parent_path());
}

void StagedFolder::move_files(const std::set<std::string>& outdated) const {
    std::error_code error;
    for (const std::string& name : outdated)
        if (!fs::exists(staged_ / name, error)) {
            fs::remove(target_ / name, error);
            require_done(error, "cannot remove " + (target_ / name).string());
        }
    for (const fs::path& file : files_in(staged_)) {
        fs::rename(staged_ / file, target_ / file, error);
        require_done(error, "cannot replace " + (target_ / file).string());
    }
    fs::remove(staged_, error);
    require_done(error, "cannot remove " + staged_.string());
}

}  // namespace hetseq
