#pragma once

#include <chrono>
#include <exception>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "hetseq/util/unique_handle.hpp"

#include "comm/host/cuda_try.hpp"

namespace hetseq {

struct CudaEventTraits {
    using type = cudaEvent_t;
    static type null() noexcept { return nullptr; }
    static void close(type& event) noexcept { cudaEventDestroy(event); }
};
using CudaEvent = UniqueHandle<CudaEventTraits>;

struct CudaStreamTraits {
    using type = cudaStream_t;
    static type null() noexcept { return nullptr; }
    static void close(type& stream) noexcept { cudaStreamDestroy(stream); }
};
using CudaStream = UniqueHandle<CudaStreamTraits>;

/// One rank's end of a non-blocking NCCL communicator, with the stream that its collectives run on.
/// Every wait sleeps and polls for NCCL's own errors and the deadline. The first failure aborts the
/// communicator, which ends its kernels. Every later use throws that failure again.
class NcclChannel {
public:
    /// Collective over the ranks that hold `id`; on the current CUDA device.
    NcclChannel(const ncclUniqueId& id, int rank, int size, std::chrono::milliseconds deadline);
    /// Collective, but while an exception unwinds.
    ~NcclChannel();
    NcclChannel(const NcclChannel&) = delete;
    NcclChannel& operator=(const NcclChannel&) = delete;

    ncclComm_t comm() const noexcept { return comm_; }
    cudaStream_t stream() const noexcept { return stream_.get(); }

    /// Throws the failure of an earlier use.
    void check() const;
    /// Waits until NCCL has launched what it was asked for.
    void wait_for_launch();
    /// Waits until `event`, recorded on `stream()`, has passed.
    void wait_for(cudaEvent_t event);
    bool passed(cudaEvent_t event) const;

private:
    template <class Done>
    void poll(const char* what, Done&& done);
    ncclResult_t state() const;
    [[noreturn]] void fail(std::exception_ptr failure);

    ncclComm_t comm_ = nullptr;
    CudaStream stream_;
    std::chrono::milliseconds deadline_;
    std::exception_ptr failure_;
};

}  // namespace hetseq
