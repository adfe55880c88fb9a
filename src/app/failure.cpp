#include "hetseq/app/failure.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/exit_code.hpp"
#include "hetseq/util/process/process_line.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq {

namespace {

constexpr std::chrono::seconds meeting_time{2};
constexpr std::chrono::milliseconds time_to_print{200};  // before a rank's end takes the others

// Prints the block of one failure, of this rank or of all.
void print_block(const std::exception& error) {
    log::here(log::Level::error, message_of(error) + "\n  " + process_line());
}

void print_shared_block(const std::exception& error) {
    log::once(log::Level::error, message_of(error) + "\n  " + job_line());
}

// True if all ranks threw it at the same place, with nothing in flight between them: by agreement,
// or because it follows from what all of them know (options, data). A device or the program itself
// may fail on each rank at another place.
bool leaves_in_order(const std::exception& error) {
    if (dynamic_cast<const AgreedError*>(&error) != nullptr)
        return true;
    switch (static_cast<ExitCode>(exit_code_of(error))) {
        case ExitCode::usage:
        case ExitCode::config:
        case ExitCode::bad_data:
        case ExitCode::missing_input:
            return true;
        default:
            return false;
    }
}

}  // namespace

int end_ranks(const HostComm& meeting, const std::exception& error) {
    const auto digest = static_cast<double>(std::hash<std::string>{}(message_of(error)) >> 12);
    std::array<double, 2> bounds{digest, -digest};
    HostRequest pending = meeting.start_all_reduce(bounds, ReduceOp::max);
    const auto deadline = std::chrono::steady_clock::now() + meeting_time;
    while (!pending.test()) {
        if (std::chrono::steady_clock::now() > deadline) {
            print_block(error);
            MpiEnvironment::abort(exit_code_of(error));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const bool same_on_all = bounds[0] == -bounds[1];
    if (same_on_all)
        print_shared_block(error);
    else
        print_block(error);
    if (!same_on_all || !leaves_in_order(error) || MpiEnvironment::has_left_thread_behind()) {
        std::this_thread::sleep_for(time_to_print);
        MpiEnvironment::abort(exit_code_of(error));
    }
    return exit_code_of(error);
}

}  // namespace hetseq
