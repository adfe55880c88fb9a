#include "hetseq/data/files/shard_spec.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "hetseq/util/error.hpp"

#include <fcntl.h>
#include <glob.h>

namespace hetseq {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        if (end > begin)
            parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

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

std::vector<std::string> matches(const std::string& pattern) {
    glob_t found{};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (status != 0 || files.empty())
        throw MissingInput("no file matches " + pattern, "", "check --data and --valid-data");
    return files;
}

std::vector<std::string> expand_item(const std::string& item) {
    std::error_code ignored;
    if (fs::is_directory(item, ignored))
        return files_in_folder(item);
    if (!fs::exists(item, ignored) && item.find_first_of("*?[") != std::string::npos)
        return matches(item);
    return {item};
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

std::vector<std::string> expand_shard_spec(const std::string& spec) {
    std::vector<std::string> files;
    for (const std::string& item : split(spec, ',')) {
        for (const std::string& file : expand_item(item))
            files.push_back(fs::path(file).lexically_normal().string());
    }
    if (files.empty())
        throw BadConfig("no data is named", "", "give --data a file, a folder or a glob");
    std::sort(files.begin(), files.end());
    const auto twice = std::adjacent_find(files.begin(), files.end());
    if (twice != files.end())
        throw BadConfig(*twice + " is named twice",
                        "its samples would count twice an epoch",
                        "name every file once");
    return files;
}

FileStamp stamp_readable_file(const std::string& path, const std::string& what_to_do) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
        throw_unreadable(path, errno, what_to_do);
    if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0)
        throw_unreadable(path, errno, what_to_do);
    if (!S_ISREG(status.st_mode))
        throw BadData(path + " is not a file", "a shard is one HDF5 file");
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
