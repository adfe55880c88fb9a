#include "hetseq/comm/agree.hpp"

#include <algorithm>
#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"

namespace hetseq {

namespace {

// A rank's report of its failure to the others.
struct Failure {
    ExitCode code = ExitCode::finished;
    std::string text;
};

Failure describe(const std::exception_ptr& exception) {
    if (!exception)
        return {};
    try {
        std::rethrow_exception(exception);
    } catch (const Error& error) {
        return {error.code(), error.what()};
    } catch (const std::exception& error) {
        return {ExitCode::internal, message_of(error)};
    } catch (...) {
        return {ExitCode::internal, "internal error: an exception of unknown type"};
    }
}

std::vector<int> ranks_with(const std::vector<std::string>& texts,
                            const std::vector<std::int64_t>& codes,
                            std::size_t model) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
        if (texts[rank] == texts[model] && codes[rank] == codes[model])
            ranks.push_back(static_cast<int>(rank));
    return ranks;
}

// " [rank 2 on node07]" or " [ranks 0, 3]"; empty when all ranks failed alike.
std::string origin(const HostComm& comm, const std::vector<int>& ranks) {
    const auto size = static_cast<std::size_t>(comm.size());
    const auto hosts = comm.all_gather(host_name());
    if (ranks.size() == size)
        return {};
    const std::string host =
        ranks.size() == 1 ? " on " + hosts[static_cast<std::size_t>(ranks.front())] : "";
    std::vector<int> numbers;
    for (const int rank : ranks)
        numbers.push_back(comm.number_of(rank));
    std::sort(numbers.begin(), numbers.end());
    return " [" + name_ranks(numbers) + host + "]";
}

[[noreturn]] void throw_agreed(const HostComm& comm, const Failure& mine, std::size_t first) {
    const auto codes = comm.all_gather(static_cast<std::int64_t>(mine.code));
    const auto texts = comm.all_gather(mine.text);
    const auto ranks = ranks_with(texts, codes, first);
    throw AgreedError(static_cast<ExitCode>(codes[first]), texts[first] + origin(comm, ranks));
}

}  // namespace

void agree(const HostComm& comm, std::exception_ptr failure) {
    constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::max();
    const std::int64_t first = comm.all_reduce(failure ? comm.rank() : nobody, ReduceOp::min);
    if (first != nobody)
        throw_agreed(comm, describe(failure), static_cast<std::size_t>(first));
}

}  // namespace hetseq
