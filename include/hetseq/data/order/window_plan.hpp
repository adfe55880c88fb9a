#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/global_order.hpp"

namespace hetseq {

/// Tells how long the rows of a block's samples are.
class LengthSource {
public:
    virtual ~LengthSource() = default;
    /// The lengths of the samples of `block`, in their order. It may wait until they are read.
    virtual std::shared_ptr<const RowLengths> lengths(std::int64_t block) = 0;
    /// Says that the lengths of `block` will be asked for soon.
    virtual void read_ahead(std::int64_t block) = 0;
};

struct WindowPlanOptions {
    GlobalOrder::Geometry geometry;
    std::uint64_t seed = 1;
    Shuffle shuffle = Shuffle::yes;
    std::int64_t batch_weight = 1;  // of a full batch: samples, or units
    /// The ragged field whose values are the units; none: every sample is one unit.
    std::optional<std::size_t> units_field{};
    bool counts_samples = false;  // `batch_weight` counts samples, whatever their units
    std::int64_t max_length = 0;  // samples with a longer row are left out; 0: none is
    /// By block: the number of samples that are not left out, and their weight (samples, or units).
    std::vector<std::int64_t> block_samples{};
    std::vector<std::int64_t> block_weights{};
};

/// Plans batches of samples of unequal length. The order of an epoch is the same as for rows of one
/// shape. It is cut where the weight of the samples so far reaches a multiple of a batch's weight.
/// A window is the part that ends in one group of mixed blocks. It has whole batches; what is left
/// over goes to the next window. Inside a window the samples are sorted by length and cut into
/// batches of even weight, and these batches are permuted. So the samples of a batch have like
/// lengths. A window can be found from the lengths of its own blocks and of the blocks just before
/// it. So memory is bounded by windows, and a run can continue anywhere.
///
/// Where sets are taken more or less often than once, epochs have unequal weights. All of them then
/// have as many batches as the mean epoch. Where whole batches would give another number, windows
/// get batches in proportion to their samples, so that none is empty, and divide their weight
/// evenly among these.
///
/// The plan depends only on its options and the lengths.
class WindowPlan {
public:
    /// `source` must outlive the plan.
    WindowPlan(WindowPlanOptions options, LengthSource& source);

    /// Of an epoch, without those left out; of the mean epoch where they differ.
    std::int64_t samples() const noexcept { return samples_; }
    /// The number is the same in all epochs: whole batches, and one for what is left.
    std::int64_t batches_per_epoch() const noexcept { return batches_; }
    std::int64_t full_batch() const noexcept { return options_.batch_weight; }
    GlobalBatch batch(std::int64_t update);

private:
    /// A group of blocks of an epoch, and the batches that end in it.
    struct Group {
        std::int64_t weight_before = 0;  // in the epoch
        std::int64_t first_batch = 0;    // in the epoch
        std::int64_t batches = 0;
    };
    struct Epoch {
        std::int64_t number = 0;
        GlobalOrder order;
        bool by_samples = false;  // windows are cut by the number of samples: all weigh 1
        std::int64_t weight = 0;
        std::int64_t batch_weight = 1;  // of its full batches
        std::vector<Group> groups{};
        std::int64_t last_group = 0;  // the last one that has batches
    };
    struct Window {
        std::int64_t epoch = 0;
        std::int64_t group = 0;
        std::vector<std::shared_ptr<const BatchItems>> batches;
    };
    struct Sample;  // where its lengths are
    struct WeightedCount {
        std::int64_t samples = 0;
        std::int64_t weight = 0;
    };

    bool is_weighted() const noexcept {
        return options_.geometry.sets && options_.shuffle == Shuffle::yes;
    }
    const Epoch& epoch(std::int64_t number);
    Epoch make_epoch(std::int64_t number);
    /// `counts`: before each group, and of the epoch.
    void settle_weights(Epoch& epoch, const std::vector<WeightedCount>& counts) const;
    std::int64_t whole_batches(const Epoch& epoch, std::int64_t weight) const;
    void count_mean_epoch();
    /// The samples of `part` that are not left out, and their weight.
    WeightedCount count(const BlockRange& part);
    std::int64_t group_of_batch(const Epoch& epoch, std::int64_t batch) const;
    const Window& window(const Epoch& epoch, std::int64_t group);
    Window make_window(const Epoch& epoch, std::int64_t group);
    Sample sample_at(const Epoch& epoch, std::int64_t position);
    Sample lengths_of(std::int64_t sample);
    std::int64_t weight_of(const Sample& sample) const;  // of one that is not left out
    bool is_left_out(const Sample& sample) const;
    /// The last position before which the samples weigh at most `weight`; samples of weight 0 at
    /// its end do not count. It is at or before `end`. The samples before `end` weigh
    /// `weight_before_end`, which is at least `weight`.
    std::int64_t border_at(const Epoch& epoch,
                           std::int64_t weight,
                           std::int64_t end,
                           std::int64_t weight_before_end);
    /// Sorts by the length in `field`. Samples of equal length keep their order.
    static void sort_by_length(std::vector<Sample>& samples, std::size_t field);
    std::vector<Sample> samples_between(const Epoch& epoch, std::int64_t begin, std::int64_t end);
    std::shared_ptr<const BatchItems> items_of(const std::vector<Sample>& samples,
                                               std::int64_t begin,
                                               std::int64_t end) const;
    void cut(const std::vector<Sample>& samples, std::int64_t batches, Window& window) const;
    void permute(const Epoch& epoch, Window& window) const;
    void read_ahead(const Epoch& epoch, std::int64_t group);

    WindowPlanOptions options_;
    LengthSource& source_;
    std::int64_t samples_ = 0;
    std::int64_t weight_ = 0;  // of an epoch; of the mean one where they differ
    std::int64_t batches_ = 0;
    std::deque<Epoch> epochs_;    // most recently used first
    std::deque<Window> windows_;  // most recently used first
    // By block, while a window is made from them.
    std::unordered_map<std::int64_t, std::shared_ptr<const RowLengths>> lengths_;
};

}  // namespace hetseq
