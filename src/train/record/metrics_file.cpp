#include "hetseq/train/record/metrics_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

// Appends all of `text` or nothing: if the disk becomes full, the written part is cut off again.
bool append(const std::filesystem::path& path, const std::string& text) {
    const UniqueHandle<detail::FileDescriptorTraits> file{
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
    if (!file)
        return false;
    const off_t length = ::lseek(file.get(), 0, SEEK_END);
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size()))
        return true;
    const int error = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(file.get(), length) != 0)
        return false;
    errno = error;
    return false;
}

bool belongs_before(const std::string& line, std::int64_t last_update) {
    const auto json = parse_json_or_discard<nlohmann::json>(line);
    return json.is_object() && json.contains("update") && json["update"].is_number_integer() &&
           json["update"].get<std::int64_t>() <= last_update;
}

std::uintmax_t bytes_in(const std::filesystem::path& path) {
    std::error_code unknown;
    const std::uintmax_t bytes = std::filesystem::file_size(path, unknown);
    return unknown ? 0 : bytes;
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path)
    : path_{std::move(path)}, bytes_{bytes_in(path_)} {}

void MetricsFile::write(const std::string& line) {
    pending_.push_back(line + "\n");
    write_pending();
}

void MetricsFile::write_pending() {
    look_for_it();
    while (!pending_.empty()) {
        if (!append(path_, pending_.front())) {
            const std::string why = std::strerror(errno);
            if (why != problem_)
                log::warn("cannot write " + path_.string() + " (" + why +
                          "): its lines are kept until it can be written");
            problem_ = why;
            return;
        }
        pending_.pop_front();
        bytes_ = bytes_in(path_);
    }
    problem_.clear();
}

// Where its folder is gone, writing says so.
void MetricsFile::look_for_it() {
    std::error_code unknown;
    if (bytes_in(path_) >= bytes_ || !std::filesystem::is_directory(path_.parent_path(), unknown))
        return;
    log::warn("somebody removed " + path_.string() +
              " or a part of it while the run goes on: its earlier lines are missing");
    was_removed_ = true;
    bytes_ = bytes_in(path_);
}

void MetricsFile::finish() {
    write_pending();
    if (was_removed_)
        log::warn(path_.string() + " lacks lines that somebody removed while the run went on");
    if (!pending_.empty())
        log::warn(std::to_string(pending_.size()) + " lines of " + path_.string() + " are lost (" +
                  problem_ + ")");
}

void cut_metrics(const std::filesystem::path& path, std::int64_t last_update) {
    std::ifstream file{path};
    if (!file)
        return;
    std::string kept;
    bool cut = false;
    for (std::string line; std::getline(file, line);) {
        const bool whole = !file.eof();
        if (whole && belongs_before(line, last_update))
            kept += line + "\n";
        else
            cut = true;
    }
    if (cut)
        write_atomically(path, kept);
}

}  // namespace hetseq
