#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "runtime.hpp"

using hetseq::stand_in::fail;
using hetseq::stand_in::Mark;
using hetseq::stand_in::report_misuse;
using hetseq::stand_in::stream_of;

namespace {

thread_local bool is_streams_thread = false;
std::atomic<long> events_now{0};
std::atomic<long> events_ever{0};
std::atomic<long> streams_now{0};
std::atomic<bool> capturing{false};

// All streams ever, and the default stream of each device.
struct Streams {
    std::mutex mutex;
    std::vector<CUstream_st*> all;
    std::map<int, CUstream_st*> defaults;

    CUstream_st* add(int device) {
        all.push_back(new CUstream_st(device, all.size()));
        return all.back();
    }
};

Streams& streams() {
    static auto* const streams = new Streams;
    return *streams;
}

// None to a stream's thread, which would wait for itself.
std::vector<CUstream_st*> streams_of(int device) {
    if (is_streams_thread)
        return {};
    const std::lock_guard lock{streams().mutex};
    std::vector<CUstream_st*> found;
    for (CUstream_st* stream : streams().all)
        if (stream->device == device)
            found.push_back(stream);
    return found;
}

bool is_default(cudaStream_t stream) {
    return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

}  // namespace

namespace hetseq::stand_in {

void Mark::pass() {
    const std::lock_guard lock{mutex_};
    passed_ = true;
    when_ = std::chrono::steady_clock::now();
    changed_.notify_all();
}

void Mark::wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return passed_; });
}

bool Mark::passed() const {
    const std::lock_guard lock{mutex_};
    return passed_;
}

std::chrono::steady_clock::time_point Mark::when() const {
    const std::lock_guard lock{mutex_};
    return when_;
}

CUstream_st& stream_of(cudaStream_t stream) {
    if (!is_default(stream))
        return *stream;
    Streams& known = streams();
    const std::lock_guard lock{known.mutex};
    CUstream_st*& found = known.defaults[current_device()];
    if (found == nullptr)
        found = known.add(current_device());
    return *found;
}

void drain_all(int device) {
    for (CUstream_st* stream : streams_of(device))
        stream->drain();
}

void wait_for_device(int device, const char* call) {
    Clock now;
    for (CUstream_st* stream : streams_of(device))
        now.join(clock_of(stream->number));
    if (!host_knows(now))
        count("wait", call);
    drain_all(device);
    host_waits(now);
}

void launch(cudaStream_t stream, std::function<void()> work) {
    stream_of(stream).push("a kernel's launch", std::move(work));
}

void launch(cudaStream_t stream,
            const char* name,
            const std::vector<Use>& uses,
            std::function<void()> work) {
    count("kernel", name);
    order_work(stream_of(stream).number, name, uses);
    stream_of(stream).push("a kernel's launch", std::move(work));
}

void work_in_place(cudaStream_t stream, const char* what, const std::vector<Use>& uses) {
    order_work(stream_of(stream).number, what, uses);
}

void drain(cudaStream_t stream) {
    stream_of(stream).drain();
}

void wait_for_stream(cudaStream_t stream, const char* call) {
    CUstream_st& waited_for = stream_of(stream);
    const Clock now = clock_of(waited_for.number);
    if (!host_knows(now))
        count("wait", call);
    waited_for.drain();
    host_waits(now);
}

long live_events() {
    return events_now;
}
long live_streams() {
    return streams_now;
}
void set_capturing(bool now) {
    capturing = now;
}

long made_events() {
    return events_ever;
}

}  // namespace hetseq::stand_in

CUstream_st::CUstream_st(int device_of_stream, std::size_t number_of_stream)
    : device{device_of_stream}, number{number_of_stream} {
    std::thread([this] { run(); }).detach();
}

void CUstream_st::run() {
    is_streams_thread = true;
    cudaSetDevice(device);
    for (;;) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return ended_ || !work_.empty(); });
        if (work_.empty())
            return;
        auto work = std::move(work_.front());
        work_.pop_front();
        busy_ = true;
        lock.unlock();
        if (hetseq::stand_in::machine().start_up.count() > 0)
            std::this_thread::sleep_for(hetseq::stand_in::machine().start_up);
        work();
        work = nullptr;  // what it holds goes before others hear that it is done
        lock.lock();
        busy_ = false;
        changed_.notify_all();
    }
}

bool CUstream_st::push(const char* call, std::function<void()> work) {
    const std::lock_guard lock{mutex_};
    if (ended_) {
        report_misuse(std::string(call) + " on a stream that was destroyed");
        return false;
    }
    work_.push_back(std::move(work));
    changed_.notify_all();
    return true;
}

void CUstream_st::drain() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return work_.empty() && !busy_; });
}

bool CUstream_st::idle() {
    const std::lock_guard lock{mutex_};
    return work_.empty() && !busy_;
}

bool CUstream_st::end() {
    const std::lock_guard lock{mutex_};
    if (ended_)
        return false;
    ended_ = true;
    changed_.notify_all();
    return true;
}

CUDART_CALL cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream,
                                                     unsigned /*flags*/,
                                                     int /*priority*/) {
    const std::lock_guard lock{streams().mutex};
    *stream = streams().add(hetseq::stand_in::current_device());
    ++streams_now;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (!stream->end()) {
        report_misuse("a stream is destroyed twice");
        return fail(cudaErrorInvalidResourceHandle);
    }
    --streams_now;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return stream_of(stream).push("cudaLaunchHostFunc", [=] { function(data); })
               ? cudaSuccess
               : fail(cudaErrorInvalidResourceHandle);
}

CUDART_CALL cudaError_t cudaStreamQuery(cudaStream_t stream) {
    CUstream_st& asked = stream_of(stream);
    const hetseq::stand_in::Clock now = hetseq::stand_in::clock_of(asked.number);
    if (!asked.idle())
        return cudaErrorNotReady;
    hetseq::stand_in::host_waits(now);
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    hetseq::stand_in::wait_for_stream(stream, "cudaStreamSynchronize");
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaDeviceSynchronize() {
    hetseq::stand_in::wait_for_device(hetseq::stand_in::current_device(), "cudaDeviceSynchronize");
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, nullptr};
    ++events_now;
    ++events_ever;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

CUDART_CALL cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    --events_now;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    auto mark = std::make_shared<Mark>(hetseq::stand_in::clock_of(stream_of(stream).number));
    if (!stream_of(stream).push("cudaEventRecord", [mark] { mark->pass(); }))
        return fail(cudaErrorInvalidResourceHandle);
    event->mark = std::move(mark);
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                                 cudaStream_t stream,
                                                 unsigned /*flags: of graphs*/) {
    return cudaEventRecord(event, stream);
}

CUDART_CALL cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (event->mark == nullptr)
        return cudaSuccess;
    if (!event->mark->passed())
        return cudaErrorNotReady;
    hetseq::stand_in::host_waits(event->mark->clock());
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (event->mark == nullptr)
        return cudaSuccess;
    if (!hetseq::stand_in::host_knows(event->mark->clock()))
        hetseq::stand_in::count("wait", "cudaEventSynchronize");
    event->mark->wait();
    hetseq::stand_in::host_waits(event->mark->clock());
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
    for (const cudaEvent_t event : {start, end})
        if (!event->timing || event->mark == nullptr) {
            report_misuse("the elapsed time of an event without timing, or never recorded");
            return fail(cudaErrorInvalidResourceHandle);
        }
    if (!start->mark->passed() || !end->mark->passed())
        return fail(cudaErrorNotReady);
    *ms = std::chrono::duration<float, std::milli>(end->mark->when() - start->mark->when()).count();
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (event->mark == nullptr)
        return cudaSuccess;
    const auto mark = event->mark;
    hetseq::stand_in::stream_waits(stream_of(stream).number, mark->clock());
    return stream_of(stream).push("cudaStreamWaitEvent", [mark] { mark->wait(); })
               ? cudaSuccess
               : fail(cudaErrorInvalidResourceHandle);
}

CUDART_CALL cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
    *status = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

CUDART_CALL cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
    return cudaSuccess;
}
