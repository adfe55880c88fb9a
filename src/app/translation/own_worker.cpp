#include "own_worker.hpp"

#include <chrono>

#include <c10/core/DeviceGuard.h>

namespace hetseq {

OwnWorker::OwnWorker(Translator& translator, const BeamOptions& options, c10::Device device)
    : thread_{[this, &translator, &options, device] { run(translator, options, device); }} {}

OwnWorker::~OwnWorker() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void OwnWorker::submit(TranslationBatch batch) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(batch));
    }
    changed_.notify_all();
}

std::optional<TranslatedBatch> OwnWorker::receive(int timeout_ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] {
        return !done_.empty() || failure_ != nullptr;
    });
    if (failure_ != nullptr)
        std::rethrow_exception(failure_);
    if (done_.empty())
        return std::nullopt;
    TranslatedBatch batch = std::move(done_.front());
    done_.pop_front();
    return batch;
}

void OwnWorker::run(Translator& translator, const BeamOptions& options, c10::Device device) {
    const c10::DeviceGuard guard(device);
    for (;;) {
        TranslationBatch batch;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
            if (ends_)
                return;
            batch = std::move(waiting_.front());
            waiting_.pop_front();
        }
        try {
            TranslatedBatch result{batch.number, translator.translate(batch.sources, options)};
            const std::lock_guard lock(mutex_);
            done_.push_back(std::move(result));
        } catch (...) {
            const std::lock_guard lock(mutex_);
            failure_ = std::current_exception();
        }
        changed_.notify_all();
    }
}

}  // namespace hetseq
