#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/event_file.hpp"

#include "event_record.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

struct Range {
    std::uint64_t begin = 0, end = 0;  // bytes of the file
};

void throw_if(const std::error_code& error, const std::string& what) {
    if (error)
        throw IoError("cannot " + what, error.message(), "check the folder's permissions");
}

BadData no_event_file(const fs::path& path, const std::string& why) {
    return BadData(path.string() + " is not an event file", why, "move it out of the folder");
}

// The records of one file, in order, up to the first that is torn or damaged.
class RecordReader {
public:
    explicit RecordReader(const fs::path& path)
        : path_{path}, file_{path, std::ios::binary | std::ios::ate} {
        const std::streamoff size = file_.tellg();
        if (size < 0 || !file_.seekg(0))
            throw IoError("cannot read " + path.string(),
                          std::strerror(errno),
                          "check the folder's permissions");
        size_ = static_cast<std::uint64_t>(size);
    }

    std::uint64_t size() const noexcept { return size_; }
    /// The place of the record that was just read.
    Range range() const noexcept { return range_; }
    bool next(std::string& message) {
        range_ = {range_.end, range_.end};
        std::string head = read(detail::record_head_bytes);
        if (head.empty())
            return false;
        const auto length = detail::record_length(head);
        if (!length && range_.begin == 0)
            throw no_event_file(path_, "its first record's checksum is wrong");
        const std::uint64_t rest = size_ - range_.begin - head.size();
        if (!length || rest < detail::record_tail_bytes ||
            *length > rest - detail::record_tail_bytes)
            return false;
        message = read(*length + detail::record_tail_bytes);
        if (!detail::is_whole(message))
            return false;
        message.resize(*length);
        range_.end += detail::record_head_bytes + *length + detail::record_tail_bytes;
        return true;
    }

private:
    // Empty if fewer bytes are left.
    std::string read(std::uint64_t bytes) {
        std::string text(bytes, '\0');
        file_.read(text.data(), static_cast<std::streamsize>(bytes));
        if (file_.bad())
            throw IoError("cannot read " + path_.string(), std::strerror(errno));
        return file_ ? text : std::string();
    }

    fs::path path_;
    std::ifstream file_;
    std::uint64_t size_ = 0;
    Range range_;
};

// The places of the records to keep; adjacent ones are joined.
std::vector<Range> ranges_to_keep(RecordReader& reader,
                                  const fs::path& path,
                                  std::int64_t last_step) {
    std::vector<Range> kept;
    std::string message;
    while (reader.next(message)) {
        const Range range = reader.range();
        const auto event = detail::parse_event(message);
        if (!event)
            throw no_event_file(path, "one of its records is not an event");
        if (range.begin == 0 && event->file_version.rfind("brain.Event:", 0) != 0)
            throw no_event_file(path, "its first record names no version");
        if (event->step > last_step)
            continue;
        if (!kept.empty() && kept.back().end == range.begin)
            kept.back().end = range.end;
        else
            kept.push_back(range);
    }
    return kept;
}

void rewrite(const fs::path& path, const std::vector<Range>& kept) {
    std::ifstream from(path, std::ios::binary);
    AtomicFile to(path);
    std::string chunk;
    for (Range range : kept) {
        from.seekg(static_cast<std::streamoff>(range.begin));
        for (; range.begin < range.end; range.begin += chunk.size()) {
            chunk.resize(std::min<std::uint64_t>(range.end - range.begin, 1 << 20));
            if (!from.read(chunk.data(), static_cast<std::streamsize>(chunk.size())))
                throw IoError("cannot read " + path.string(), std::strerror(errno));
            to.write(chunk);
        }
    }
    to.commit();
}

void cut_file(const fs::path& path, std::int64_t last_step) {
    RecordReader reader(path);
    const std::vector<Range> kept = ranges_to_keep(reader, path, last_step);
    std::error_code error;
    if (kept.empty())
        fs::remove(path, error);
    else if (kept.size() > 1 || kept.front().begin > 0)
        rewrite(path, kept);
    else if (kept.front().end < reader.size())  // the usual case of rising steps; needs no space
        fs::resize_file(path, kept.front().end, error);
    throw_if(error, "cut " + path.string());
}

}  // namespace

void cut_events(const fs::path& folder, std::int64_t last_step) {
    std::error_code error;
    if (!fs::exists(folder, error))
        return;
    std::vector<fs::path> files;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        if (entry->is_regular_file(error) &&
            entry->path().filename().string().find("tfevents") != std::string::npos)
            files.push_back(entry->path());
    throw_if(error, "read the folder " + folder.string());
    for (const fs::path& file : files)
        cut_file(file, last_step);
}

}  // namespace hetseq
