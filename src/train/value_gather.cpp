#include "hetseq/train/value_gather.hpp"

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/process/profiler_range.hpp"
#include "hetseq/comm/communicator.hpp"

namespace hetseq {

ValueGather::ValueGather(FlatParameters& parameters,
                         Communicator& communicator,
                         std::int64_t bucket_bytes)
    : parameters_{parameters},
      communicator_{communicator},
      buckets_{cut_buckets(parameters, bucket_bytes)} {}

ValueGather::~ValueGather() = default;

void ValueGather::start() {
    HETSEQ_ASSERT(works_.empty());
    if (parameters_.state_ranges().empty())
        return;
    const ProfilerRange range{"gather values"};
    for (const GradientBucket& bucket : buckets_)
        works_.push_back(communicator_.start_all_gather(
            parameters_.values().narrow(0, bucket.offset, bucket.numel),
            ranges_in(bucket, parameters_.state_ranges())));
}

double ValueGather::wait() {
    if (works_.empty())
        return 0;
    const double begin = monotonic_seconds();
    works_.back()->wait();  // the last: nobody is woken for those before
    own_ms_ = 0;
    for (const std::unique_ptr<Work>& work : works_) {
        work->wait();
        own_ms_ += work->own_ms();
    }
    works_.clear();
    return 1000 * (monotonic_seconds() - begin);
}

}  // namespace hetseq
