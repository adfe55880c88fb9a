#include "prediction_ranks.hpp"

#include <deque>
#include <string>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"

#include "block_queue.hpp"

namespace hetseq {

namespace {

constexpr int longest_pause_ms = 1;
constexpr int batches_of_worker = 2;
// What may be on its way from a rank, and what may wait on rank 0 for rows of earlier samples.
constexpr std::size_t most_sent_bytes = std::size_t{64} << 20;
constexpr std::int64_t most_waiting_bytes = std::int64_t{256} << 20;

// What a rank says to rank 0, in the first byte of a message.
constexpr char says_batch = 'b';
constexpr char says_failed = 'f';
constexpr char says_ended = 'e';

std::vector<BatchToPredict> batches_of(const ReadBlock& read, std::int64_t block) {
    const double begin_s = monotonic_seconds();
    std::vector<BatchToPredict> batches;
    for (MicroBatch& batch : read(block))
        batches.push_back({std::move(batch)});
    HETSEQ_ASSERT(!batches.empty());
    batches.front().read_s = monotonic_seconds() - begin_s;
    batches.back().ends_block = true;
    return batches;
}

class PredictionServer {
public:
    PredictionServer(Mailbox& mailbox, const ReadBlock& read, const Predict& predict)
        : mailbox_{mailbox}, read_{read}, predict_{predict} {}

    std::exception_ptr run() {
        std::exception_ptr failure;
        for (;;) {
            const Mailbox::Message message = mailbox_.wait();
            if (message.bytes.empty())
                break;
            if (failure != nullptr)
                continue;
            try {
                serve(std::stoll(message.bytes));
            } catch (...) {
                failure = std::current_exception();
                mailbox_.send(0, {says_failed});
            }
        }
        mailbox_.send(0, {says_ended});
        mailbox_.flush();
        return failure;
    }

private:
    void serve(std::int64_t block) {
        for (BatchToPredict& batch : batches_of(read_, block)) {
            std::string message = says_batch + to_bytes(predict_(batch));
            sent_bytes_ += message.size();
            mailbox_.send(0, std::move(message));
            if (sent_bytes_ > most_sent_bytes) {
                mailbox_.flush();
                sent_bytes_ = 0;
            }
        }
    }

    Mailbox& mailbox_;
    const ReadBlock& read_;
    const Predict& predict_;
    std::size_t sent_bytes_ = 0;  // since the last time that nothing was on its way
};

class PredictionDispatcher {
public:
    PredictionDispatcher(const PredictionWork& work, PredictionFile& file)
        : work_{work},
          file_{file},
          queue_{work.blocks, work.mailbox.size()},
          seconds_(static_cast<std::size_t>(work.mailbox.size())),
          samples_(static_cast<std::size_t>(work.mailbox.size())) {}

    PredictionOutcome run() {
        PredictionOutcome outcome;
        try {
            while (file_.samples() < work_.samples && !has_failed_) {
                const bool went = hand_out();
                feed_own_worker();
                collect(went ? 0 : longest_pause_ms);
                work_.progress(file_.samples());
            }
        } catch (...) {
            outcome.failure = std::current_exception();
        }
        end_others();
        outcome.samples = std::move(samples_);
        return outcome;
    }

private:
    int others() const { return work_.mailbox.size() - 1; }

    bool hand_out() {
        bool any = false;
        while (file_.waiting_bytes() < most_waiting_bytes) {
            const std::optional<BlockQueue::Assignment> next = queue_.next();
            if (!next)
                break;
            any = true;
            if (next->rank == work_.mailbox.rank())
                own_blocks_.push_back(next->block);
            else
                work_.mailbox.send(next->rank, std::to_string(next->block));
        }
        return any;
    }

    void feed_own_worker() {
        while (at_own_worker_ < batches_of_worker) {
            if (own_batches_.empty() && own_blocks_.empty())
                return;
            if (own_batches_.empty()) {
                for (BatchToPredict& batch : batches_of(work_.read, own_blocks_.front()))
                    own_batches_.push_back(std::move(batch));
                own_blocks_.pop_front();
            }
            work_.own.submit(std::move(own_batches_.front()));
            own_batches_.pop_front();
            ++at_own_worker_;
        }
    }

    void collect(int timeout_ms) {
        bool any = false;
        while (const std::optional<Mailbox::Message> message = work_.mailbox.receive()) {
            any = true;
            if (message->bytes.front() == says_failed)
                has_failed_ = true;
            else
                write(message->from, predicted_from_bytes(message->bytes.substr(1)));
        }
        while (const std::optional<PredictedBatch> batch =
                   work_.own.receive(any ? 0 : timeout_ms)) {
            any = true;
            --at_own_worker_;
            write(work_.mailbox.rank(), *batch);
        }
    }

    void write(int rank, const PredictedBatch& batch) {
        file_.write(batch.begin, batch.samples, batch.predictions);
        const auto r = static_cast<std::size_t>(rank);
        samples_[r] += batch.samples;
        seconds_[r] += batch.seconds;
        if (batch.ends_block)
            queue_.finish(rank, std::exchange(seconds_[r], 0));
    }

    // Messages that are on their way are taken, or their senders would wait.
    void end_others() {
        for (int rank = 0; rank <= others(); ++rank)
            if (rank != work_.mailbox.rank())
                work_.mailbox.send(rank, {});
        for (int ended = 0; ended < others();)
            ended += work_.mailbox.wait().bytes.front() == says_ended ? 1 : 0;
        work_.mailbox.flush();
    }

    const PredictionWork& work_;
    PredictionFile& file_;
    BlockQueue queue_;
    std::deque<std::int64_t> own_blocks_;
    std::deque<BatchToPredict> own_batches_;  // of the block that was read last
    int at_own_worker_ = 0;                   // batches
    bool has_failed_ = false;                 // another rank
    std::vector<double> seconds_;             // for the block at work, by rank
    std::vector<std::int64_t> samples_;       // by rank
};

}  // namespace

std::exception_ptr serve_predictions(Mailbox& mailbox,
                                     const ReadBlock& read,
                                     const Predict& predict) {
    return PredictionServer(mailbox, read, predict).run();
}

PredictionOutcome run_predictions(const PredictionWork& work, PredictionFile& file) {
    return PredictionDispatcher(work, file).run();
}

}  // namespace hetseq
