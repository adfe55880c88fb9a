// Ends in the ways a job can end; comm_ending checks mpirun's exit status.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/mpi/shared_window.hpp"

namespace hetseq {
namespace {

// Rank 1 fails while the others wait for it in every way there is.
void fail_alone(const HostComm& world, Communicator& communicator) {
    const SharedWindow window{world.split_by_host(), 4096};
    if (world.rank() == 1)
        throw IoError("disk is full");
    std::vector<double> values{1};
    HostRequest pending = world.start_all_reduce(values, ReduceOp::sum);
    const auto work = communicator.start_all_reduce_sum(at::ones({1000000}));
    work->wait();
}

// Rank 1 fails with collectives of its own in flight, which nobody will join.
void fail_in_flight(const HostComm& world, Communicator& communicator) {
    const HostComm other = world.duplicate();
    std::vector<double> values{1};
    if (world.rank() != 1) {
        world.barrier();
        return;
    }
    HostRequest pending = other.start_all_reduce(values, ReduceOp::sum);
    const auto work = communicator.start_all_reduce_sum(at::ones({1000000}));
    throw IoError("disk is full");
}

// All ranks fail together and can therefore finalize, though a window was left open in unwinding.
int fail_agreed(const HostComm& world) {
    try {
        const SharedWindow window{world.split_by_host(), 4096};
        agree_on(world, [&] {
            if (world.rank() == 1)
                throw BadData("row 7 is bad");
        });
        return 0;
    } catch (const Error& error) {
        return static_cast<int>(error.code());
    }
}

// One rank is late to finalize; the others must wait for it.
void finish(const HostComm& world) {
    if (world.rank() == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
}

int run(int argc, char** argv) {
    const std::string way = argc > 1 ? argv[1] : "";
    const MpiEnvironment environment{argc, argv};
    const HostComm world = HostComm::world(environment);
    const auto communicator = make_communicator(world, environment, at::kCPU);
    if (way == "agreed")
        return fail_agreed(world);
    if (way == "alone")
        fail_alone(world, *communicator);
    else if (way == "in_flight")
        fail_in_flight(world, *communicator);
    else
        finish(world);
    return 0;
}

}  // namespace
}  // namespace hetseq

int main(int argc, char** argv) {
    try {
        return hetseq::run(argc, argv);
    } catch (const hetseq::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        hetseq::MpiEnvironment::abort(static_cast<int>(error.code()));
    }
}
