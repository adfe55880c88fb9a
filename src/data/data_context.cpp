#include "hetseq/data/data_context.hpp"

#include "hetseq/util/log.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

#include "data_context_impl.hpp"

namespace hetseq {

namespace {

std::vector<int> ranks_of(const HostComm& node, const HostComm& world) {
    std::vector<int> ranks;
    for (const std::int64_t rank : node.all_gather(static_cast<std::int64_t>(world.rank())))
        ranks.push_back(static_cast<int>(rank));
    return ranks;
}

void leave_reader_behind() {
    log::warn_here(
        "a read that other ranks take part in does not end (one of them is gone or stands still): "
        "the job ends without waiting for it");
    MpiEnvironment::leave_thread_behind();
}

}  // namespace

DataContext::Impl::Impl(const HostComm& all, bool threads_may_call_mpi)
    : world{all.duplicate()},
      node{world.split_by_host()},
      io_node{std::make_shared<HostComm>(node.duplicate())},
      node_ranks{ranks_of(node, world)},
      io{threads_may_call_mpi ? IoThreading::background : IoThreading::inline_in_caller,
         {.left_behind = leave_reader_behind}},
      meeting{std::make_shared<ReaderMeeting>(io_node, io.abandoned())} {
    initialize_hdf5();
}

DataContext::DataContext(const HostComm& world, bool threads_may_call_mpi)
    : impl_{std::make_unique<Impl>(world, threads_may_call_mpi)} {}

DataContext::~DataContext() = default;

}  // namespace hetseq
