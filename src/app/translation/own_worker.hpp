#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <c10/core/Device.h>

#include "batches.hpp"

#include "hetseq/model/decoding/translator.hpp"

namespace hetseq {

/// Translates batches in a thread of its own, while the rank's main thread reads, writes and hands
/// out work.
class OwnWorker {
public:
    OwnWorker(Translator& translator, const BeamOptions& options, c10::Device device);
    ~OwnWorker();

    void submit(TranslationBatch batch);
    /// One that is done; waits up to `timeout_ms`. Throws what its translation threw.
    std::optional<TranslatedBatch> receive(int timeout_ms);

private:
    void run(Translator& translator, const BeamOptions& options, c10::Device device);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<TranslationBatch> waiting_;
    std::deque<TranslatedBatch> done_;
    std::exception_ptr failure_;
    bool ends_ = false;
    std::thread thread_;
};

}  // namespace hetseq
