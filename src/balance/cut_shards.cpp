#include "hetseq/balance/cut_shards.hpp"

#include <algorithm>
#include <numeric>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

using Wide = __int128;

class ShardCutter {
public:
    explicit ShardCutter(std::span<const std::int64_t> parts)
        : parts_{parts},
          sum_{std::accumulate(parts.begin(), parts.end(), std::int64_t{0})},
          owned_(parts.size(), 0) {
        HETSEQ_ASSERT(sum_ > 0 && *std::min_element(parts.begin(), parts.end()) >= 0);
    }

    void cut(const std::vector<std::int64_t>& blocks) {
        const std::int64_t length = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
        if (length == 0)
            return;
        const std::vector<Wide> lacking = lacking_with(length);
        const auto with_part =
            std::count_if(parts_.begin(), parts_.end(), [](auto part) { return part > 0; });
        if (std::ssize(blocks) < with_part) {
            const auto most = std::max_element(lacking.begin(), lacking.end());
            give(static_cast<std::size_t>(most - lacking.begin()), length);
            return;
        }
        give_in_proportion(lacking, blocks, length);
    }

    std::vector<OwnedRange> take() { return std::move(ranges_); }

private:
    // How far each rank is below its part once `length` more is given, times `sum_`; 0: it is not.
    std::vector<Wide> lacking_with(std::int64_t length) const {
        std::vector<Wide> lacking;
        for (std::size_t r = 0; r < parts_.size(); ++r)
            lacking.push_back(
                std::max<Wide>(Wide{parts_[r]} * (end_ + length) - Wide{owned_[r]} * sum_, 0));
        return lacking;
    }

    // Each border at the block's nearest to it.
    void give_in_proportion(const std::vector<Wide>& lacking,
                            const std::vector<std::int64_t>& blocks,
                            std::int64_t length) {
        const Wide all = std::accumulate(lacking.begin(), lacking.end(), Wide{0});
        const std::int64_t begin = end_;
        Wide before = 0;
        std::size_t block = 0;
        std::int64_t border = 0;
        for (std::size_t r = 0; r < lacking.size(); ++r) {
            before += lacking[r];
            // border + blocks[block] / 2 <= length * before / all
            while (block < blocks.size() &&
                   (2 * Wide{border} + blocks[block]) * all <= 2 * before * length)
                border += blocks[block++];
            give(r, begin + border - end_);
        }
    }

    void give(std::size_t rank, std::int64_t length) {
        if (length == 0)
            return;
        ranges_.push_back({static_cast<int>(rank), end_, length});
        owned_[rank] += length;
        end_ += length;
    }

    std::span<const std::int64_t> parts_;
    std::int64_t sum_;
    std::vector<std::int64_t> owned_;  // by rank
    std::int64_t end_ = 0;             // of what was given
    std::vector<OwnedRange> ranges_;
};

}  // namespace

std::vector<OwnedRange> cut_shards(std::span<const std::vector<std::int64_t>> buckets,
                                   std::span<const std::int64_t> parts) {
    ShardCutter cutter{parts};
    for (const std::vector<std::int64_t>& blocks : buckets)
        cutter.cut(blocks);
    return cutter.take();
}

}  // namespace hetseq
