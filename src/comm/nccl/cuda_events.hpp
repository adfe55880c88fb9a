#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "hetseq/util/unique_handle.hpp"

namespace hetseq {

struct CudaEventTraits {
    using type = cudaEvent_t;
    static type null() noexcept { return nullptr; }
    static void close(type& event) noexcept { cudaEventDestroy(event); }
};
using CudaEvent = UniqueHandle<CudaEventTraits>;

/// Events of one device that are used again, because making one costs as much as a small kernel's
/// launch. Any thread may use it. It outlives the events that it lends.
class CudaEvents {
public:
    enum class Timing { off, on };
    explicit CudaEvents(Timing timing) noexcept : timing_{timing} {}

    /// Goes back when it is destroyed.
    class Lent {
    public:
        Lent() = default;
        Lent(CudaEvents& pool, CudaEvent event) noexcept : pool_{&pool}, event_{std::move(event)} {}
        ~Lent() { give_back(); }
        Lent(Lent&&) noexcept = default;
        Lent& operator=(Lent&& other) noexcept;
        Lent(const Lent&) = delete;
        Lent& operator=(const Lent&) = delete;

        cudaEvent_t get() const noexcept { return event_.get(); }

    private:
        void give_back() noexcept;

        CudaEvents* pool_ = nullptr;
        CudaEvent event_;
    };

    /// An event that is recorded on `stream` now.
    Lent record(cudaStream_t stream);

private:
    CudaEvent take();

    Timing timing_;
    std::mutex mutex_;
    std::vector<CudaEvent> free_;
};

}  // namespace hetseq
