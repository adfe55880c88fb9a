#include "hetseq/train/checkpoint_folder.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

const std::string prefix = "update-";
const std::string unfinished = ".unfinished-";
const std::string outdated = ".outdated-";

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

// Not those above it: a run's folder that was removed is not made again.
void make(const fs::path& folder) {
    std::error_code error;
    fs::create_directory(folder, error);
    check(error, "cannot make " + folder.string());
}

void remove_tree(const fs::path& folder) {
    std::error_code error;
    fs::remove_all(folder, error);
    check(error, "cannot remove " + folder.string());
}

void move_to(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::rename(from, to, error);
    check(error, "cannot rename " + from.string() + " to " + to.filename().string());
}

// Its name goes first, so that half a checkpoint never bears one.
void retire(const fs::path& checkpoint) {
    const fs::path other = checkpoint.parent_path() / (outdated + checkpoint.filename().string());
    remove_tree(other);
    move_to(checkpoint, other);
    remove_tree(other);
}

}  // namespace

fs::path CheckpointFolder::of_update(std::int64_t update) const {
    return path_ / name_of(update);
}

fs::path CheckpointFolder::temporary(std::int64_t update) const {
    return path_ / (unfinished + name_of(update));
}

std::vector<CheckpointFolder::Entry> CheckpointFolder::list() const {
    std::vector<Entry> entries;
    std::error_code error;
    for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error))
        if (const auto update = update_of(at->path().filename().string()))
            entries.push_back({*update, at->path()});
    if (error && error != std::errc::no_such_file_or_directory)
        check(error, "cannot read " + path_.string());
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.update > b.update;
    });
    return entries;
}

fs::path CheckpointFolder::begin(std::int64_t update) const {
    make(path_);
    make(temporary(update));
    return temporary(update);
}

void CheckpointFolder::commit(std::int64_t update, const Manifest& manifest) const {
    const fs::path from = temporary(update);
    write_atomically(from / Manifest::file_name, manifest_json(manifest));
    if (fs::exists(of_update(update)))
        retire(of_update(update));
    move_to(from, of_update(update));
    sync_folder(path_);
}

void CheckpointFolder::abandon(std::int64_t update) const noexcept {
    std::error_code ignored;
    fs::remove_all(temporary(update), ignored);
}

void CheckpointFolder::prune(std::int64_t keep_last, std::int64_t best_update) const {
    const std::vector<Entry> entries = list();
    if (keep_last <= 0)
        return;
    for (std::size_t i = static_cast<std::size_t>(keep_last); i < entries.size(); ++i)
        if (entries[i].update != best_update)
            retire(entries[i].path);
}

void CheckpointFolder::clean(std::int64_t update) const {
    std::error_code error;
    std::vector<fs::path> leftovers;
    for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        const auto beyond = update_of(name);
        if (name.rfind(unfinished, 0) == 0 || name.rfind(outdated, 0) == 0 ||
            (beyond && *beyond > update))
            leftovers.push_back(at->path());
    }
    for (const fs::path& path : leftovers)
        remove_tree(path);
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
