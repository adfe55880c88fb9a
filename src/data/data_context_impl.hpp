#pragma once

#include <memory>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/data/io_thread.hpp"

namespace hetseq {

struct DataContext::Impl {
    Impl(const HostComm& all, bool threads_may_call_mpi);

    HostComm world;
    HostComm node;                            // for the main thread
    std::shared_ptr<const HostComm> io_node;  // the same ranks, for the I/O thread alone
    std::vector<int> node_ranks;              // of `world`, on this host
    IoThread io;
};

}  // namespace hetseq
