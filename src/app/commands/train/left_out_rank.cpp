#include "left_out_rank.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/run_folder.hpp"

namespace hetseq {

namespace {

// Asks the others to stop by the file that they look for.
class StopFile {
public:
    explicit StopFile(const std::string& save_dir) : path_{RunFolder::stop_file_of(save_dir)} {}
    // They remove it at their end; it might come after that.
    ~StopFile() {
        std::error_code ignored;
        if (is_written_)
            std::filesystem::remove(path_, ignored);
    }
    StopFile(const StopFile&) = delete;
    StopFile& operator=(const StopFile&) = delete;

    void write() {
        if (!is_written_)
            is_written_ = (std::ofstream(path_) << RunFolder::passed_on).good();
    }

private:
    std::filesystem::path path_;
    bool is_written_ = false;
};

}  // namespace

void wait_for_the_others(HostRequest& end, const std::string& save_dir) {
    const activity::Waiting waiting;
    StopFile stop(save_dir);
    bool is_warned = false;
    while (!end.test()) {
        const bool asked = signal_inbox::stop_signal() != 0;
        if (asked && !save_dir.empty())
            stop.write();
        else if (asked && !std::exchange(is_warned, true))
            log::warn_here(
                "a signal asks this rank to stop, which was left out of the run: send it "
                "to another rank");
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

}  // namespace hetseq
