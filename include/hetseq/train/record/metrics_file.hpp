#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

namespace hetseq {

/// RUN/metrics.jsonl: one JSON object per line, appended. A line that cannot be written (disk full)
/// is kept and tried again with the next one, so that training goes on.
class MetricsFile {
public:
    explicit MetricsFile(std::filesystem::path path);

    void write(const std::string& line);
    /// Tries to write once more, and reports what is lost, or what somebody removed.
    void finish();

private:
    void write_pending();
    void look_for_it();

    std::filesystem::path path_;
    std::deque<std::string> pending_;
    std::string problem_;   // empty: all is written
    std::uintmax_t bytes_;  // in the file when it was written last
    bool was_removed_ = false;
};

/// Removes the lines of updates beyond `last_update`, and a line that was cut short. Throws
/// IoError.
void cut_metrics(const std::filesystem::path& path, std::int64_t last_update);

}  // namespace hetseq
