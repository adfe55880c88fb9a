#include "hetseq/data/files/first_failure.hpp"

#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

struct Described {
    ExitCode code = ExitCode::internal;
    std::string text;
};

Described describe(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        return {e.code(), e.what()};
    } catch (const std::exception& e) {
        return {ExitCode::internal, e.what()};
    }
}

}  // namespace

void agree_on_first(const HostComm& comm, const std::optional<OrderedFailure>& failure) {
    const std::int64_t mine = failure ? failure->place : none;
    const std::int64_t first = comm.all_reduce(mine, ReduceOp::min);
    if (first == none)
        return;
    const std::int64_t brings = mine == first ? comm.rank() : comm.size();
    const auto owner = static_cast<int>(comm.all_reduce(brings, ReduceOp::min));
    const Described own = failure ? describe(failure->error) : Described{};
    const std::int64_t code = comm.broadcast(static_cast<std::int64_t>(own.code), owner);
    const std::string text = comm.broadcast(own.text, owner);
    throw Error(static_cast<ExitCode>(code), text);
}

}  // namespace hetseq
