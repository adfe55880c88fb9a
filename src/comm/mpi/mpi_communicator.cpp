#include <exception>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"

#include "collective_thread.hpp"
#include "comm/communicators.hpp"
#include "mpi_collectives.hpp"

namespace hetseq {

namespace {

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
                    const CommunicatorOptions& options,
                    const std::vector<int>& job_ranks)
        : collectives_{world, options.deadline, job_ranks},
          thread_{threads == ThreadSupport::multiple ? RunOn::own_thread : RunOn::caller} {}

    // While an exception unwinds, the other ranks may not take part any more, so what is in flight
    // is abandoned. Otherwise the thread finishes it first.
    ~MpiCommunicator() override {
        if (std::uncaught_exceptions() > 0)
            collectives_.abandon();
    }
    MpiCommunicator(const MpiCommunicator&) = delete;
    MpiCommunicator& operator=(const MpiCommunicator&) = delete;

    int rank() const noexcept override { return collectives_.rank(); }
    int size() const noexcept override { return collectives_.size(); }
    at::Device device() const noexcept override { return at::kCPU; }

    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        check(tensor);
        return start([this, tensor] { collectives_.all_reduce_sum(tensor); });
    }
    std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor tensor,
                                                   std::vector<OwnedRange> ranges) override {
        check(tensor);
        return start([this, tensor, ranges = std::move(ranges)] {
            collectives_.reduce_scatter_sum(tensor, ranges);
        });
    }
    std::unique_ptr<Work> start_all_gather(at::Tensor tensor,
                                           std::vector<OwnedRange> ranges) override {
        check(tensor);
        return start([this, tensor, ranges = std::move(ranges)] {
            collectives_.all_gather(tensor, ranges);
        });
    }

    void broadcast(at::Tensor tensor, int root) override {
        start([this, tensor, root] { collectives_.broadcast(tensor, root); })->wait();
    }

private:
    static void check(const at::Tensor& tensor) {
        HETSEQ_ASSERT(tensor.device().is_cpu() && tensor.is_contiguous() &&
                      tensor.is_floating_point());
    }

    std::unique_ptr<Work> start(std::function<void()> collective) {
        return std::make_unique<MpiWork>(thread_, thread_.enqueue(std::move(collective)));
    }

    MpiCollectives collectives_;
    CollectiveThread thread_;  // last: ends before what it uses
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const HostComm& world,
                                                    ThreadSupport threads,
                                                    const CommunicatorOptions& options,
                                                    const std::vector<int>& job_ranks) {
    return std::make_unique<MpiCommunicator>(world, threads, options, job_ranks);
}

}  // namespace hetseq
