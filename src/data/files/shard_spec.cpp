#include "hetseq/data/files/shard_spec.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/name_list.hpp"

#include <fcntl.h>
#include <glob.h>

namespace hetseq {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in_folder(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code error;
    fs::directory_iterator entry{folder, error};
    for (; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        const auto extension = entry->path().extension();
        if (extension == ".h5" || extension == ".hdf5")
            files.push_back(entry->path().string());
    }
    if (error)
        throw IoError("cannot list the folder " + folder,
                      error.message(),
                      "check its permissions, or name the files themselves");
    if (files.empty())
        throw MissingInput("the folder " + folder + " holds no shards",
                           "looked for *.h5 and *.hdf5",
                           "name the folder with the prepared files, or the files themselves");
    return files;
}

bool exists(const std::string& name) {
    std::error_code ignored;
    return fs::exists(name, ignored);
}

// The folders that a pattern begins with may have any names: they are taken as they are.
std::string without_pattern_in_folders(const std::string& pattern) {
    std::size_t known = 0;
    for (std::size_t slash = pattern.find('/'); slash != std::string::npos;
         slash = pattern.find('/', slash + 1)) {
        if (slash > 0 && !exists(pattern.substr(0, slash)))
            break;
        known = slash;
    }
    return escaped_name(pattern.substr(0, known)) + pattern.substr(known);
}

std::vector<std::string> matches(const std::string& pattern) {
    glob_t found{};
    const int status = ::glob(without_pattern_in_folders(pattern).c_str(), 0, nullptr, &found);
    std::vector<std::string> files;
    if (status == 0)
        files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    return files;
}

bool is_there(const std::string& name) {
    return exists(name) || exists(unescaped_name(name)) ||
           (is_pattern(name) && !matches(name).empty());
}

[[noreturn]] void throw_no_match(const std::string& pattern) {
    const std::size_t bracket = pattern.find('[');
    if (bracket == std::string::npos)
        throw MissingInput("no file matches " + pattern, "", "check --data and --valid-data");
    const std::string choice = pattern.substr(bracket, pattern.find(']', bracket) - bracket + 1);
    throw MissingInput("no file matches " + pattern,
                       choice + " is a pattern: one of the characters between the brackets",
                       "check --data and --valid-data; brackets of a name that does not exist yet "
                       "are written \\[ and \\]");
}

[[noreturn]] void throw_missing_part(const std::string& name) {
    throw MissingInput("no such file: " + name,
                       "a comma stands between two names",
                       "check --data and --valid-data; a comma of a name is written \\,");
}

std::vector<std::string> expand_item(const std::string& item, bool is_one_of_many) {
    std::error_code ignored;
    const std::string name = exists(item) ? item : unescaped_name(item);
    if (fs::is_directory(name, ignored))
        return files_in_folder(name);
    if (exists(name))
        return {name};
    if (is_pattern(item)) {
        std::vector<std::string> files = matches(item);
        if (files.empty())
            throw_no_match(item);
        return files;
    }
    if (is_one_of_many && fs::status(name, ignored).type() == fs::file_type::not_found)
        throw_missing_part(name);
    return {name};
}

void check_is_complete(const fs::path& folder) {
    if (exists((folder / unfinished_preparation).string()))
        throw BadData(
            "the shards of " + (folder.empty() ? "." : folder.string()) + " are not complete",
            std::string("it holds ") + unfinished_preparation +
                ": a preparation is replacing them, or was interrupted",
            "wait for it, or prepare them again with --overwrite");
}

[[noreturn]] void throw_unreadable(const std::string& path,
                                   int error,
                                   const std::string& what_to_do) {
    if (error == ENOENT || error == ENOTDIR)
        throw MissingInput("no such file: " + path, "", what_to_do);
    throw IoError("cannot read " + path, std::strerror(error), "check the file's permissions");
}

FileStamp to_stamp(const struct stat& status) {
    return {status.st_size,
            std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace

std::vector<std::string> names_in_spec(const std::string& spec) {
    return split_names(spec, is_there);
}

std::vector<std::string> expand_shard_spec(const std::string& spec) {
    std::vector<std::string> paths;
    for (const NamedFile& file : expand_shard_names(spec))
        paths.push_back(file.path);
    return paths;
}

std::vector<NamedFile> expand_shard_names(const std::string& spec) {
    std::vector<NamedFile> files;
    const std::vector<std::string> items = names_in_spec(spec);
    for (std::size_t i = 0; i < items.size(); ++i)
        for (const std::string& file : expand_item(items[i], items.size() > 1))
            files.push_back(
                {fs::path(file).lexically_normal().string(), static_cast<std::int64_t>(i)});
    if (files.empty())
        throw BadConfig("no data is named", "", "give --data a file, a folder or a glob");
    std::sort(files.begin(), files.end());
    const auto twice =
        std::adjacent_find(files.begin(), files.end(), [](const NamedFile& a, const NamedFile& b) {
            return a.path == b.path;
        });
    if (twice != files.end())
        throw BadConfig(twice->path + " is named twice",
                        "its samples would count twice an epoch",
                        "name every file once");
    std::set<fs::path> folders;
    for (const NamedFile& file : files)
        if (folders.insert(fs::path(file.path).parent_path()).second)
            check_is_complete(fs::path(file.path).parent_path());
    return files;
}

FileStamp stamp_readable_file(const std::string& path, const std::string& what_to_do) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        throw_unreadable(path, errno, what_to_do);
    if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0)
        throw_unreadable(path, errno, what_to_do);
    check_regular_file(path);
    return to_stamp(status);
}

void check_unchanged(const std::string& path, const FileStamp& stamp) {
    const FileStamp now = stamp_readable_file(path);
    if (now == stamp)
        return;
    const std::string what =
        now.bytes != stamp.bytes
            ? std::to_string(stamp.bytes) + " bytes at start, " + std::to_string(now.bytes) + " now"
            : std::string("its modification time is another");
    throw BadData(path + " changed during the run", what, "start again once the file is complete");
}

}  // namespace hetseq
