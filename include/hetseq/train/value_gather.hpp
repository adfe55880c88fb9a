#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hetseq/optim/gradient_buckets.hpp"

namespace hetseq {

class Communicator;
class Work;

/// Where the optimizer's state is cut over ranks, each steps the values whose state it holds. This
/// gives them to all ranks, bucket by bucket, while the host goes on: the same bits on unlike
/// devices. Nothing is done where each rank steps all.
class ValueGather {
public:
    /// Both must outlive it.
    ValueGather(FlatParameters& parameters, Communicator& communicator, std::int64_t bucket_bytes);
    ~ValueGather();
    ValueGather(const ValueGather&) = delete;
    ValueGather& operator=(const ValueGather&) = delete;

    /// Collective. Nobody may touch the values until `wait` has returned.
    void start();
    bool is_under_way() const noexcept { return !works_.empty(); }
    /// Returns the time it waited [ms]; 0 where nothing was started.
    double wait();
    /// The last gather's own time, of all buckets [ms].
    double own_ms() const noexcept { return own_ms_; }

private:
    FlatParameters& parameters_;
    Communicator& communicator_;
    std::vector<GradientBucket> buckets_;
    std::vector<std::unique_ptr<Work>> works_;  // in flight
    double own_ms_ = 0;
};

}  // namespace hetseq
