// The stand-in's own parts. Objects that threads of streams may use are never destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include "order.hpp"
#include "stand_in_cuda.hpp"

#define CUDART_CALL extern "C"

namespace hetseq::stand_in {

/// Writes it down, for `take_misuses`.
void report_misuse(const std::string& what);

/// Remembers `code` for cudaGetLastError.
cudaError_t fail(cudaError_t code);

/// Of this thread.
int current_device();

/// The program waits for all work of all streams of `device`; `call` is counted.
void wait_for_device(int device, const char* call);

/// A point in a stream's work.
class Mark {
public:
    explicit Mark(Clock clock) : clock_{std::move(clock)} {}
    /// What is done when it has passed.
    const Clock& clock() const { return clock_; }

    void pass();
    void wait();
    bool passed() const;
    std::chrono::steady_clock::time_point when() const;

private:
    const Clock clock_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool passed_ = false;
    std::chrono::steady_clock::time_point when_;
};

}  // namespace hetseq::stand_in

/// Stays after cudaStreamDestroy, so that a later use is seen.
struct CUstream_st {
    CUstream_st(int device, std::size_t number);

    /// False, and reported, on a stream that was destroyed.
    bool push(const char* call, std::function<void()> work);
    void drain();
    bool idle();
    /// False if that was done before.
    bool end();

    const int device;
    const std::size_t number;  // of all streams ever

private:
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    bool busy_ = false;
    bool ended_ = false;
};

struct CUevent_st {
    bool timing = true;
    std::shared_ptr<hetseq::stand_in::Mark> mark;  // null until it is recorded
};

namespace hetseq::stand_in {

/// The stream itself, or this thread's device's default stream.
CUstream_st& stream_of(cudaStream_t stream);

}  // namespace hetseq::stand_in
