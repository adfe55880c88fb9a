#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/standard_streams.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mailbox.hpp"

#include "app/own_worker.hpp"
#include "line_source.hpp"

namespace hetseq {

/// Takes lines of text through the ranks of a job, on rank 0: reads them, hands out batches to
/// ranks as they get free, this one included, and writes to standard output. Input that pauses is
/// worked on as it came.
///
/// `Job` has the lines on their way and keeps their order: an `OrderedLines`.
template <class Job>
class LineDispatcher {
public:
    using Worker = OwnWorker<typename Job::Batch, typename Job::Result>;

    LineDispatcher(Mailbox& mailbox, Worker& own, LineSource& input, Job& text)
        : mailbox_{mailbox},
          own_{own},
          input_{input},
          text_{text},
          under_way_(static_cast<std::size_t>(mailbox.size())) {}

    /// Until all is written; at the end the other ranks are told. Returns an error of the input,
    /// what comes before it was worked on; ReaderLeft as soon as nobody reads the output; or null.
    /// `progress` is called now and then.
    std::exception_ptr run(const std::function<void()>& progress);

private:
    // A rank has one more batch than it works on, so that it need not wait for the next.
    static constexpr int batches_of_rank = 2;
    static constexpr double quiet_s =
        0.02;  // without input, before lines that fill no window go on
    static constexpr int longest_wait_ms = 1;

    bool read();
    bool hand_out();
    bool collect(int timeout_ms);
    void write();
    void run_to_end(const std::function<void()>& progress);
    bool has_busy_rank() const;
    bool is_done() const { return input_ended() && !text_.has_batch() && text_.is_written(); }
    bool input_ended() const { return failure_ != nullptr || (input_.at_end() && !may_have_line_); }
    bool has_idle_rank() const;
    void take_lines();

    Mailbox& mailbox_;
    Worker& own_;
    LineSource& input_;
    Job& text_;
    std::vector<int> under_way_;  // batches, by rank
    std::exception_ptr failure_;  // of the input
    bool may_have_line_ = true;   // in what was read
    double last_input_s_ = 0;
};

// Errors of the input come after what stands before them.
template <class Job>
void LineDispatcher<Job>::take_lines() {
    try {
        while (text_.wants_lines()) {
            const std::optional<std::string> line = input_.next();
            may_have_line_ = line.has_value();
            if (!line)
                return;
            text_.add(*line);
        }
    } catch (...) {
        failure_ = std::current_exception();
    }
}

template <class Job>
bool LineDispatcher<Job>::read() {
    if (input_ended() || !text_.wants_lines())
        return false;
    const std::int64_t before = text_.lines();
    bool came = false;
    try {
        came = input_.read(0);
    } catch (...) {
        failure_ = std::current_exception();
    }
    if (failure_ == nullptr)
        take_lines();
    if (came || text_.lines() > before)
        last_input_s_ = monotonic_seconds();
    return came || text_.lines() > before;
}

template <class Job>
bool LineDispatcher<Job>::has_idle_rank() const {
    for (const int count : under_way_)
        if (count == 0)
            return true;
    return false;
}

template <class Job>
bool LineDispatcher<Job>::hand_out() {
    // Input that is not read, since enough lines are on their way, does not pause.
    const bool is_quiet =
        has_idle_rank() && text_.wants_lines() && monotonic_seconds() - last_input_s_ > quiet_s;
    if (text_.has_uncut_lines() && !text_.has_batch() && (input_ended() || is_quiet))
        text_.cut(true);
    bool any = false;
    for (int depth = 0; depth < batches_of_rank; ++depth)
        for (int rank = 0; rank < mailbox_.size() && text_.has_batch(); ++rank) {
            int& count = under_way_[static_cast<std::size_t>(rank)];
            if (count > depth)
                continue;
            any = true;
            ++count;
            if (rank == mailbox_.rank())
                own_.submit(text_.take_batch());
            else
                mailbox_.send(rank, to_bytes(text_.take_batch()));
        }
    return any;
}

template <class Job>
bool LineDispatcher<Job>::collect(int timeout_ms) {
    bool any = false;
    while (const std::optional<Mailbox::Message> message = mailbox_.receive()) {
        --under_way_[static_cast<std::size_t>(message->from)];
        text_.put(Job::result_from_bytes(message->bytes));
        any = true;
    }
    while (const std::optional<typename Job::Result> batch = own_.receive(any ? 0 : timeout_ms)) {
        --under_way_[static_cast<std::size_t>(mailbox_.rank())];
        text_.put(*batch);
        any = true;
    }
    return any;
}

template <class Job>
void LineDispatcher<Job>::write() {
    std::string out;
    text_.write(out);
    if (out.empty() && has_lost_reader())
        throw ReaderLeft{};
    write_output(out);
    flush_output();
}

// Another one than this.
template <class Job>
bool LineDispatcher<Job>::has_busy_rank() const {
    for (int rank = 0; rank < mailbox_.size(); ++rank)
        if (rank != mailbox_.rank() && under_way_[static_cast<std::size_t>(rank)] > 0)
            return true;
    return false;
}

template <class Job>
void LineDispatcher<Job>::run_to_end(const std::function<void()>& progress) {
    while (!is_done()) {
        const bool came = read();
        const bool went = hand_out();
        collect(came || went ? 0 : longest_wait_ms);
        write();
        progress();
    }
}

template <class Job>
std::exception_ptr LineDispatcher<Job>::run(const std::function<void()>& progress) {
    try {
        run_to_end(progress);
    } catch (const ReaderLeft&) {
        failure_ = std::current_exception();
        while (has_busy_rank())  // what they send must be received
            collect(longest_wait_ms);
    }
    for (int rank = 0; rank < mailbox_.size(); ++rank)
        if (rank != mailbox_.rank())
            mailbox_.send(rank, {});
    mailbox_.flush();
    return failure_;
}

/// True for ReaderLeft.
inline bool is_reader_left(const std::exception_ptr& failure) {
    try {
        if (failure)
            std::rethrow_exception(failure);
    } catch (const ReaderLeft&) {
        return true;
    } catch (...) {
    }
    return false;
}

/// Collective. Throws on all ranks what rank 0 got of `run`.
inline void agree_on_end(const HostComm& world, const std::exception_ptr& failure) {
    if (world.all_reduce(std::int64_t{is_reader_left(failure)}, ReduceOp::max) != 0)
        throw ReaderLeft{};
    agree(world, failure);
}

}  // namespace hetseq
