#pragma once

#include <memory>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/blocks/io_thread.hpp"
#include "hetseq/data/blocks/reader_meeting.hpp"
#include "hetseq/data/data_context.hpp"

namespace hetseq {

struct DataContext::Impl {
    Impl(const HostComm& all, bool threads_may_call_mpi);

    HostComm world;
    HostComm node;                            // for the main thread
    std::shared_ptr<const HostComm> io_node;  // the same ranks, for the I/O thread alone
    std::vector<int> node_ranks;              // of `world`, on this host
    IoThread io;
    std::shared_ptr<ReaderMeeting> meeting;  // for the I/O thread; its tasks own it too
};

}  // namespace hetseq
