#include "hetseq/util/log.hpp"

#include <mutex>
#include <utility>

#include "hetseq/util/process/process_line.hpp"
#include "hetseq/util/process/status_line.hpp"
#include "hetseq/util/text.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace hetseq::log {

namespace {

struct State {
    std::shared_ptr<spdlog::logger> logger = std::make_shared<spdlog::logger>(
        "hetseq", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    int rank = 0;
    int size = 1;
    std::string host;
    std::string prefix;
    int columns = 0;  // of the terminal; 0: there is none
    std::mutex mutex;
    std::string last_error, role;  // behind `mutex`

    State() {
        logger->set_pattern("%H:%M:%S %^%l%$ %v");
        logger->flush_on(spdlog::level::debug);
    }
};

State& state() {
    static State state;
    return state;
}

spdlog::level::level_enum to_spdlog(Level level) {
    switch (level) {
        case Level::debug:
            return spdlog::level::debug;
        case Level::info:
            return spdlog::level::info;
        case Level::warning:
            return spdlog::level::warn;
        case Level::error:
            return spdlog::level::err;
    }
    return spdlog::level::err;
}

void print(Level level, const std::string& message) {
    constexpr std::size_t before_message = 17;  // at most: "HH:MM:SS warning "
    const auto hidden = status_line::hide();
    state().logger->log(
        to_spdlog(level),
        "{}",
        state().columns > 0
            ? wrapped(message, static_cast<std::size_t>(state().columns), before_message)
            : message);
}

void keep(Level level, const std::string& message) {
    if (level != Level::error)
        return;
    const std::lock_guard lock{state().mutex};
    state().last_error = message;
}

}  // namespace

void set_identity(int rank, int size, const std::string& host) {
    const std::lock_guard lock{state().mutex};
    state().role.clear();
    set_process_identity(rank, size, host);
    state().rank = rank;
    state().size = size;
    state().host = host;
    if (size > 1)
        state().prefix = "[rank " + std::to_string(rank) + " on " + host + "] ";
}

void set_role(const std::string& role) {
    const std::lock_guard lock{state().mutex};
    state().role = role;
    const std::string place = state().host + ", " + role;
    set_process_identity(state().rank, state().size, place);
    state().prefix = "[rank " + std::to_string(state().rank) + " on " + place + "] ";
}

std::string role() {
    const std::lock_guard lock{state().mutex};
    return state().role;
}

void set_columns(int columns) {
    state().columns = columns;
}

void once(Level level, const std::string& message) {
    keep(level, message);
    if (state().rank == 0)
        print(level, message);
}

void here(Level level, const std::string& message) {
    keep(level, message);
    std::string prefix;
    {
        const std::lock_guard lock{state().mutex};
        prefix = state().prefix;
    }
    print(level, prefix + message);
}

std::string take_last_error() {
    const std::lock_guard lock{state().mutex};
    return std::exchange(state().last_error, {});
}

}  // namespace hetseq::log
