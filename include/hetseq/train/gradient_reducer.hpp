#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/owned_range.hpp"

namespace hetseq {

class Communicator;
class FlatParameters;
class PairSum;
class SharedParameters;
class Work;

/// Sums flat gradients over ranks bucket by bucket, in one fixed order, while backward still runs.
/// What ranks say of the update follows the last bucket. Where a model is cut over ranks, a bucket
/// is summed among those that hold its parameters, perhaps this rank alone.
class GradientReducer {
public:
    /// Hooks the parameters; all arguments must outlive the reducer. Buckets are those of
    /// `cut_buckets`. `sent`: the type in which gradients are sent,
    /// which takes memory for a copy of them; none: their own. `shared`: who holds which parameters
    /// of a model that is cut over ranks; null: every rank holds all.
    GradientReducer(FlatParameters& parameters,
                    Communicator& communicator,
                    std::int64_t bucket_bytes,
                    std::optional<at::ScalarType> sent = std::nullopt,
                    const SharedParameters* shared = nullptr);
    ~GradientReducer();
    GradientReducer(const GradientReducer&) = delete;
    GradientReducer& operator=(const GradientReducer&) = delete;

    /// Calls `backward`, whose gradients are added to the flat ones. On a GPU a kernel adds those
    /// of a whole bucket, when all have come, in place of one kernel for each.
    void add_gradients_of(const std::function<void()>& backward);

    /// The next backward is this rank's last of the update: buckets start as their gradients become
    /// ready.
    void arm();
    /// Undoes `arm` so that backward can start over; no bucket may have been started.
    void disarm();
    /// Collective. Starts every bucket not yet started (all of them on a rank without work) and
    /// then `sums`, where that is defined, and `status`. Both may be of another type than the
    /// gradients.
    void start_rest(const at::Tensor& status, const at::Tensor& sums = {});
    /// What `finish` calls. All may ask the device for work.
    struct Calls {
        /// Gradients are summed and `start_rest`'s status is not: where parameters or their state
        /// are cut over ranks, a rank then tells of those that it holds. Not called elsewhere.
        std::function<void()> before_status = [] {};
        std::function<void()> then = [] {};       // all is summed; this is waited for too
        std::function<void()> meanwhile = [] {};  // behind it, and not waited for
    };
    /// Waits until all that was started is summed. Gradients, sums and status hold the sums then,
    /// the same bits on all ranks; of gradients a rank has those whose state it holds.
    void finish(const Calls& calls);
    void finish() { finish(Calls{}); }

    /// Collective. Starts summing `gradients`, a tensor like the flat ones, and `sums` where that
    /// is defined, beside what is under way of others. `sent`: like `gradients`, of the type in
    /// which they are sent, and afterwards has the sums; undefined: they are sent themselves.
    std::vector<std::unique_ptr<Work>> start_beside(const at::Tensor& gradients,
                                                    const at::Tensor& sent,
                                                    const at::Tensor& sums);
    /// What was summed of `gradients` in `sent` comes back, when it is there.
    void take_sent(at::Tensor gradients, const at::Tensor& sent) const;
    /// Collective. Starts summing `status` behind what was started so far.
    std::unique_ptr<Work> start_status(const at::Tensor& status);
    /// Memory for `start_beside`'s `sent` that nothing else uses then, and more of it; undefined:
    /// it needs none.
    at::Tensor sent() const { return sent_; }
    at::Tensor new_sent() const;

    /// True if a bucket of this update was started already, so that its memory must not be touched.
    bool started() const noexcept { return next_ > 0; }
    /// Zeroes the gradients in buckets that were not started.
    void zero_unstarted();

    struct Timing {
        double last_bucket_ms = 0;  // the last bucket's own time, the status behind it included
        double buckets_ms = 0;      // all buckets' own time, likewise
    };
    const Timing& timing() const noexcept { return timing_; }
    std::size_t buckets() const noexcept { return buckets_.size(); }

private:
    struct Bucket {
        at::Tensor gradients;  // (n), a view
        at::Tensor sent;       // (n), what is summed: the gradients, or a copy of another type
        Communicator* among = nullptr;   // the ranks that sum it; null: this one has all of it
        PairSum* pair = nullptr;         // sums it in their place, behind backward
        std::vector<OwnedRange> ranges;  // who has the sums; empty: all ranks
        int parameters = 0;
        int missing = 0;                // parameters whose gradient is not ready yet
        std::vector<std::size_t> made;  // parameters whose gradient is not yet added
        std::unique_ptr<Work> work;     // null where there is nothing to sum
    };
    class Hook;

    void make_buckets(std::int64_t bucket_bytes, const SharedParameters* shared);
    void on_gradient_ready(std::size_t parameter);
    void add_made(Bucket& bucket);
    void take_gradients_apart();
    void put_gradients_back();
    void start_ready_buckets();
    void start_next();
    std::unique_ptr<Work> start_sum(const Bucket& bucket);
    bool is_sharded() const noexcept;
    void start_status_behind_sums(const Calls& calls);
    Work* wait_for_all_but_last();
    void take_timing(Work& status_work);

    FlatParameters& parameters_;
    Communicator& communicator_;
    at::Tensor sent_;  // a copy of the gradients; undefined: they are sent themselves
    std::vector<Bucket> buckets_;
    std::vector<std::size_t> bucket_of_;  // by parameter, in layout order
    std::size_t next_ = 0;                // the first bucket not yet started
    std::unique_ptr<Work> sums_work_;     // null: there are no sums
    at::Tensor status_;
    std::unique_ptr<Work> status_work_;  // null where `finish` starts it
    bool armed_ = false;
    std::vector<at::Tensor> views_;  // by parameter, of the flat gradients; empty on a CPU
    bool gathers_ = false;           // gradients are apart
    Timing timing_;
};

}  // namespace hetseq
