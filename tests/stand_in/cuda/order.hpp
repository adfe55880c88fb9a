// Which work of streams is done before which other work, as far as the program has waited for it:
// vector clocks (Fidge 1988, Mattern 1989). Uses of the same memory that nothing has put in order
// are reported, whether or not they made a difference this time. All threads of the host share one
// clock, and a query that finds work done counts as a wait: what one thread waits for by chance can
// hide that another one does not wait.
#pragma once

#include <cstddef>
#include <vector>

#include "stand_in_cuda.hpp"

namespace hetseq::stand_in {

/// How many pieces of work of each stream, by the stream's number, are known to be done.
class Clock {
public:
    long at(std::size_t stream) const { return stream < times_.size() ? times_[stream] : 0; }
    void set(std::size_t stream, long time);
    void join(const Clock& other);
    /// True where all that `other` covers is done.
    bool covers(const Clock& other) const;

private:
    std::vector<long> times_;
};

/// Adds a piece of work to `stream`. `uses` says what memory it touches. Returns its time, by the
/// stream's clock. `what` must live as long as the program.
long order_work(std::size_t stream, const char* what, const std::vector<Use>& uses);

/// Returns what is done when the work that `stream` has now is done.
Clock clock_of(std::size_t stream);

/// All later work of `stream`, or of the host, comes after `clock`.
void stream_waits(std::size_t stream, const Clock& clock);
void host_waits(const Clock& clock);

/// True where the host has waited for this work, or for all that the clock covers.
bool host_knows(std::size_t stream, long time);
bool host_knows(const Clock& clock);

/// The memory is given back.
void forget_uses(const void* begin, std::size_t bytes);

}  // namespace hetseq::stand_in
