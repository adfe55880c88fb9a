#pragma once

#include <functional>
#include <memory>
#include <string>

namespace hetseq {

/// While it lasts, this rank waits for all others, in MPI's own calls too, where nothing else could
/// end it. After the limit it says what it knows and ends the process with the exit code of failed
/// communication; the launcher then ends the others. Time in which this process was itself
/// suspended does not count.
class MeetingLimit {
public:
    struct Options {
        /// [s]; 0: none. HETSEQ_MEETING_TIMEOUT, or 120.
        double seconds = seconds_of_environment();
        /// Called once, on the watching thread, with the message.
        std::function<void(const std::string&)> end = end_process;
    };

    /// `where`: "in MPI_Init". `missing`, called on the watching thread, says who has not come; may
    /// be empty, and so may its text.
    explicit MeetingLimit(std::string where, std::function<std::string()> missing = {});
    MeetingLimit(std::string where, std::function<std::string()> missing, const Options& options);
    /// All have met.
    ~MeetingLimit();
    MeetingLimit(const MeetingLimit&) = delete;
    MeetingLimit& operator=(const MeetingLimit&) = delete;

    /// All have met.
    void met() noexcept;

    static double seconds_of_environment();
    static void end_process(const std::string& message);

private:
    struct Watch;
    std::unique_ptr<Watch> watch_;  // null: no limit
};

}  // namespace hetseq
