#include <atomic>
#include <exception>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/fault_point.hpp"

#include "all_reduce.hpp"
#include "collective_thread.hpp"
#include "comm/communicators.hpp"

#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

namespace hetseq {

namespace {

// How a tensor is summed depends on its size and the number of ranks alone, so that a run that is
// continued on as many ranks has the same bits.
constexpr std::size_t largest_doubled = std::size_t{32} << 10;  // bytes: one exchange of everything
constexpr std::size_t largest_direct = std::size_t{16} << 20;   // bytes: as much memory once more
constexpr int most_direct_ranks = 64;                           // each of which talks to all others

// Between hosts just short of 64 KiB, above which Open MPI's TCP asks the receiver before it sends:
// between hosts of 1.0 and 0.25 cores 4.8 MB took 1.9 ms of the slower one's time in such messages,
// 3.2 in those of 128 KiB. Bits do not depend on it.
constexpr std::size_t message_bytes_on_one_host = std::size_t{128} << 10;
constexpr std::size_t message_bytes_between_hosts = std::size_t{60} << 10;

class MpiWork final : public Work {
public:
    MpiWork(CollectiveThread& thread, std::shared_ptr<CollectiveResult> result)
        : thread_{thread}, result_{std::move(result)} {}
    void wait() override {
        const activity::Waiting waiting;
        thread_.finish(*result_);
    }
    bool done() override { return result_->done(); }
    double own_ms() override { return result_->own_ms(); }

private:
    CollectiveThread& thread_;
    std::shared_ptr<CollectiveResult> result_;
};

class MpiCommunicator final : public Communicator {
public:
    MpiCommunicator(const HostComm& world,
                    ThreadSupport threads,
                    const CommunicatorOptions& options)
        : comm_{world.duplicate()},
          message_bytes_{world.split_by_host().size() == world.size()
                             ? message_bytes_on_one_host
                             : message_bytes_between_hosts},
          options_{options},
          thread_{threads == ThreadSupport::multiple ? RunOn::own_thread : RunOn::caller} {}

    // While an exception unwinds, the other ranks may not take part any more, so what is in flight
    // is abandoned. Otherwise the thread finishes it first.
    ~MpiCommunicator() override { abandoned_ = std::uncaught_exceptions() > 0; }
    MpiCommunicator(const MpiCommunicator&) = delete;
    MpiCommunicator& operator=(const MpiCommunicator&) = delete;

    int rank() const noexcept override { return comm_.rank(); }
    int size() const noexcept override { return comm_.size(); }
    at::Device device() const noexcept override { return at::kCPU; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        check(tensor);
        HETSEQ_ASSERT(tensor.is_floating_point());
        return std::make_unique<MpiWork>(thread_, thread_.enqueue([this, tensor] {
            guarded(tensor, [&](Progress& p) { sum(tensor, p); });
        }));
    }

    void broadcast(at::Tensor tensor, int root) override {
        check(tensor);
        auto result = thread_.enqueue([this, tensor, root] {
            guarded(tensor, [&](Progress& p) { send_all(tensor, root, p); });
        });
        MpiWork{thread_, result}.wait();
    }

private:
    static void check(const at::Tensor& tensor) {
        HETSEQ_ASSERT(tensor.device().is_cpu() && tensor.is_contiguous());
    }

    std::string other_ranks() const {
        return size() == 2 ? "rank " + std::to_string(1 - rank()) : "the other ranks";
    }

    // Runs `collective`. After a failure, MPI may still write to the tensor and the scratch memory,
    // so neither is ever freed.
    template <class Collective>
    void guarded(const at::Tensor& tensor, Collective&& collective) {
        const activity::Waiting waiting;  // where this is the job's thread
        Progress progress{options_.deadline, abandoned_, other_ranks()};
        try {
            fault_point("reduce_thread", activity::now().update);
            collective(progress);
        } catch (...) {
            static_cast<void>(new at::Tensor(tensor));
            static_cast<void>(scratch_.release());
            throw;
        }
    }

    void sum(const at::Tensor& tensor, Progress& progress) {
        AT_DISPATCH_FLOATING_TYPES_AND2(
            at::kBFloat16, at::kHalf, tensor.scalar_type(), "all_reduce_sum", [&] {
                auto* values = tensor.mutable_data_ptr<scalar_t>();
                const auto count = static_cast<std::size_t>(tensor.numel());
                const MPI_Comm comm = mpi_handle(comm_);
                if (tensor.nbytes() <= largest_doubled)
                    doubling_all_reduce(comm, values, count, *scratch_, progress);
                else if (tensor.nbytes() <= largest_direct && size() <= most_direct_ranks)
                    direct_all_reduce(comm, values, count, message_bytes_, *scratch_, progress);
                else
                    ring_all_reduce(comm, values, count, message_bytes_, *scratch_, progress);
            });
    }

    void send_all(const at::Tensor& tensor, int root, Progress& progress) {
        constexpr std::size_t piece_bytes = std::size_t{1} << 30;  // MPI counts in int
        auto* bytes = static_cast<std::byte*>(tensor.mutable_data_ptr());
        for (std::size_t begin = 0; begin < tensor.nbytes(); begin += piece_bytes) {
            const auto length = static_cast<int>(std::min(piece_bytes, tensor.nbytes() - begin));
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_TRY(MPI_Ibcast(bytes + begin, length, MPI_BYTE, root, mpi_handle(comm_), &request));
            for (int complete = 0; complete == 0;) {
                MPI_TRY(MPI_Test(&request, &complete, MPI_STATUS_IGNORE));
                if (complete == 0)
                    progress.nothing_moved();
            }
        }
    }

    HostComm comm_;
    std::size_t message_bytes_;
    CommunicatorOptions options_;
    std::unique_ptr<Scratch> scratch_ = std::make_unique<Scratch>();
    std::atomic<bool> abandoned_ = false;
    CollectiveThread thread_;  // last: ends before what it uses
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const HostComm& world,
                                                    ThreadSupport threads,
                                                    const CommunicatorOptions& options) {
    return std::make_unique<MpiCommunicator>(world, threads, options);
}

}  // namespace hetseq
