#include "hetseq/state/checkpoint_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <system_error>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

const std::string prefix = "update-";
const std::string unfinished = ".unfinished-";
const std::string outdated = ".outdated-";
const std::string replaced = ".replaced-";
const std::string unused = "unused-";
const std::string nothing_saved = ".nothing-saved";
const std::string timed = ".timed";
constexpr std::int64_t timed_kept = 2;

std::string name_of(std::int64_t update) {
    constexpr std::size_t digits = 8;
    const std::string number = std::to_string(update);
    return prefix + std::string(digits - std::min(digits, number.size()), '0') + number;
}

std::optional<std::int64_t> update_of(const std::string& name) {
    if (name.rfind(prefix, 0) != 0)
        return std::nullopt;
    std::int64_t update = 0;
    const char* const begin = name.data() + prefix.size();
    const char* const end = name.data() + name.size();
    const auto [parsed, error] = std::from_chars(begin, end, update);
    if (error != std::errc() || parsed != end || name != name_of(update))
        return std::nullopt;
    return update;
}

void check(const std::error_code& error, const std::string& problem) {
    if (error)
        throw IoError(problem, error.message(), "check the folder's permissions and free space");
}

// Does not make the folders above it: a run's folder that was removed is not made again.
void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directory(folder, error);
    check(error, "cannot make " + folder.string());
}

// One by one: a slow file system may take long for all of them.
void remove_tree(const fs::path& folder) {
    std::error_code error;
    if (fs::is_directory(fs::symlink_status(folder, error)))
        for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
             entry.increment(error)) {
            std::error_code told_below;
            fs::remove_all(entry->path(), told_below);
            activity::progress();
        }
    fs::remove_all(folder, error);
    check(error, "cannot remove " + folder.string());
}

void move_to(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::rename(from, to, error);
    check(error, "cannot rename " + from.string() + " to " + to.filename().string());
}

bool starts_with(const std::string& name, const std::string& beginning) {
    return name.rfind(beginning, 0) == 0;
}

bool is_whole(const fs::path& checkpoint) {
    try {
        for (const auto& [name, digest] : read_manifest(checkpoint).files)
            verify_file(checkpoint, name, digest);
        return true;
    } catch (const BadData&) {
        return false;
    } catch (const MissingInput&) {
        return false;
    }
}

}  // namespace

fs::path CheckpointFolder::of_update(std::int64_t update) const {
    return path_ / name_of(update);
}

fs::path CheckpointFolder::temporary(std::int64_t update) const {
    return path_ / (unfinished + name_of(update) + (start_.empty() ? "" : "-" + start_));
}

fs::path CheckpointFolder::aside(std::int64_t update) const {
    return path_ / (replaced + name_of(update));
}

std::vector<CheckpointFolder::Entry> CheckpointFolder::list() const {
    std::map<std::int64_t, fs::path, std::greater<>> found;
    std::error_code error;
    for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (const auto update = update_of(name))
            found[*update] = at->path();
        else if (starts_with(name, replaced))
            if (const auto former = update_of(name.substr(replaced.size())))
                found.try_emplace(*former, at->path());
    }
    // By its number: libraries of LibTorch 2.7 bring parts of an older standard library, whose
    // categories of errors are not ours.
    if (error && error.value() != ENOENT)
        check(error, "cannot read " + path_.string());
    std::vector<Entry> entries;
    for (const auto& [update, path] : found)
        entries.push_back({update, path});
    return entries;
}

void CheckpointFolder::make() const {
    make_folder(path_);
    // Where it is lost with the host, the next start asks what to do: it needs no wait for the
    // disk.
    if (!std::ofstream(path_ / nothing_saved))
        check(std::make_error_code(std::errc::io_error), "cannot write into " + path_.string());
}

bool CheckpointFolder::has_saved_nothing() const {
    std::error_code unknown;
    return fs::exists(path_ / nothing_saved, unknown);
}

fs::path CheckpointFolder::begin(std::int64_t update) const {
    make_folder(path_);
    make_folder(temporary(update));
    return temporary(update);
}

void CheckpointFolder::mark_timed(std::int64_t update) const {
    if (!std::ofstream(temporary(update) / timed))
        check(std::make_error_code(std::errc::io_error), "cannot write into " + path_.string());
}

void CheckpointFolder::unmark_timed(std::int64_t update) const {
    may_change_();
    std::error_code error;
    fs::remove(of_update(update) / timed, error);
    check(error, "cannot change " + of_update(update).string());
}

void CheckpointFolder::commit(std::int64_t update, const Manifest& manifest) const {
    const fs::path from = temporary(update);
    write_atomically(from / Manifest::file_name, manifest_json(manifest));
    if (fs::exists(of_update(update)))
        replace(update);
    else
        rename(from, of_update(update));
    remove(path_ / nothing_saved);
    sync_folder(path_);
    clear(aside(update));
}

// No call exchanges two folders on every file system (NFS and Lustre refuse RENAME_EXCHANGE). The
// former checkpoint keeps a temporary name until the new one has the proper name.
void CheckpointFolder::replace(std::int64_t update) const {
    remove(aside(update));
    fault_point("checkpoint_aside", update);
    rename(of_update(update), aside(update));
    fault_point("checkpoint_rename", update);
    try {
        move_to(temporary(update), of_update(update));
    } catch (const IoError&) {
        move_to(aside(update), of_update(update));
        throw;
    }
    fault_point("checkpoint_renamed", update);
}

void CheckpointFolder::put_back() const {
    bool moved = false;
    for (const Entry& entry : list()) {
        if (entry.path == of_update(entry.update) || !is_whole(entry.path))
            continue;
        rename(entry.path, of_update(entry.update));
        moved = true;
    }
    if (moved)
        sync_folder(path_);
}

void CheckpointFolder::abandon(std::int64_t update) const noexcept {
    std::error_code ignored;
    fs::remove_all(temporary(update), ignored);
}

void CheckpointFolder::prune(std::int64_t keep_last, std::int64_t best_update) const {
    std::int64_t seen = 0, seen_timed = 0;
    for (const Entry& entry : list()) {
        const bool is_kept = is_timed(entry.path) ? ++seen_timed <= timed_kept
                                                  : keep_last <= 0 || ++seen <= keep_last;
        if (!is_kept && entry.update != best_update)
            retire(entry.path);
    }
}

std::vector<std::string> CheckpointFolder::names() const {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error))
        names.push_back(at->path().filename().string());
    return names;
}

void CheckpointFolder::remove_leftovers() const {
    for (const std::string& name : names()) {
        const bool is_superseded =
            starts_with(name, replaced) && fs::exists(path_ / name.substr(replaced.size()));
        if (starts_with(name, unfinished) || starts_with(name, outdated) || is_superseded)
            clear(path_ / name);
    }
}

std::vector<fs::path> CheckpointFolder::set_aside(std::int64_t update) const {
    std::vector<fs::path> moved;
    for (const Entry& entry : list()) {
        if (entry.update <= update)
            continue;
        fs::path other = path_ / (unused + name_of(entry.update));
        for (int count = 2; fs::exists(other); ++count)
            other = path_ / (unused + name_of(entry.update) + "-" + std::to_string(count));
        rename(entry.path, other);
        moved.push_back(other);
    }
    return moved;
}

void CheckpointFolder::remove_all() const {
    for (const std::string& name : names())
        if (starts_with(name, unfinished) || starts_with(name, outdated) ||
            starts_with(name, replaced) || update_of(name) || starts_with(name, unused + prefix))
            remove(path_ / name);
}

void CheckpointFolder::rename(const fs::path& from, const fs::path& to) const {
    may_change_();
    move_to(from, to);
}

void CheckpointFolder::remove(const fs::path& folder) const {
    may_change_();
    remove_tree(folder);
    activity::progress();  // of a slow file system
}

// What is of no use any more. On NFS it stays while a process has a file of it open, and processes
// of a start that was killed may still write into theirs.
bool CheckpointFolder::clear(const fs::path& folder) const {
    try {
        remove(folder);
        return true;
    } catch (const IoError& error) {
        log::warn_here(message_of(error) + "; a later start removes it");
        return false;
    }
}

// The folder is renamed first, so that half a checkpoint never has a checkpoint's name.
void CheckpointFolder::retire(const fs::path& checkpoint) const {
    const fs::path other = path_ / (outdated + checkpoint.filename().string());
    if (!clear(other))
        return;
    rename(checkpoint, other);
    clear(other);
}

bool is_timed(const fs::path& checkpoint) {
    std::error_code unknown;
    return fs::exists(checkpoint / timed, unknown);
}

std::vector<fs::path> checkpoints_at(const fs::path& path) {
    if (fs::exists(path / Manifest::file_name))
        return {path};
    std::vector<fs::path> folders;
    for (const auto& entry : CheckpointFolder(path / "checkpoints").list())
        folders.push_back(entry.path);
    return folders;
}

}  // namespace hetseq
