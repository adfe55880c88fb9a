#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hetseq {

/// Hands out blocks [0, n) of equal work, in order, to ranks as they get free. A rank has one more
/// block than it works on, so that it need not wait for the next, as soon as its speed is known and
/// if it would not keep the others waiting at the end.
class BlockQueue {
public:
    BlockQueue(std::int64_t blocks, int ranks);

    struct Assignment {
        std::int64_t block = 0;
        int rank = 0;
    };
    /// Nothing if no rank should get a block now.
    std::optional<Assignment> next();
    /// `rank` finished one of its blocks in `seconds` of its own time.
    void finish(int rank, double seconds);

private:
    struct Rank {
        std::int64_t assigned = 0;  // not finished
        std::int64_t finished = 0;
        double seconds = 0;  // for these
        bool is_known() const noexcept { return finished > 0; }
    };

    double seconds_of_block(const Rank& rank) const;
    std::vector<bool> ranks_worth_more() const;

    std::int64_t blocks_;
    std::int64_t next_ = 0;
    std::vector<Rank> ranks_;
};

}  // namespace hetseq
