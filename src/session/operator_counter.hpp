#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hetseq/plan/roofline.hpp"

namespace hetseq {

/// Counts what this thread's operators do while it lives, backward included. An operator counts
/// where it writes to memory by itself: neither one that consists of others (`linear`), nor a view
/// of a tensor, nor memory without values, nor one of single numbers. Copies that an operator makes
/// for itself belong to it, and to hetseq's own operators all that they are made of. On a GPU each
/// takes a kernel or more. One at a time.
class OperatorCounter {
public:
    OperatorCounter();
    ~OperatorCounter();
    OperatorCounter(const OperatorCounter&) = delete;
    OperatorCounter& operator=(const OperatorCounter&) = delete;

    const std::vector<OperatorWork>& operators() const noexcept;
    /// How often a number was taken from a tensor (`item`), for which a GPU's host would wait.
    std::int64_t numbers_read() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hetseq
