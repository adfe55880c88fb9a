#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"

namespace hetseq {

/// A model and a job's ranks, for the choice of who trains what. Times are finite and >= 0.
struct LayoutProblem {
    /// The chain in micro-batches of `micro_batch` > 0 units. Its devices are those of all ranks,
    /// and its number of micro-batches is not read: each worker has its own.
    struct Size {
        std::int64_t micro_batch = 0;
        ChainProblem chain;
    };

    /// A worker that gets a share of the batch.
    struct Sharer {
        std::vector<int> ranks;
        std::size_t size = 0;  // of its micro-batches, in `sizes`
    };

    std::vector<Size> sizes;            // at least one, the largest first
    std::vector<std::size_t> class_of;  // by rank: of the chains' devices
    std::vector<int> host_of;           // by rank
    /// Between two ranks. A worker's links are then the mean over its own ranks' pairs, by class:
    /// ranks of one host may be near. Empty: they are those of the chain.
    std::function<ChainLink(int from, int to)> link = {};
    std::int64_t batch = 0;  // units of an update, > 0: samples or tokens
    bool is_late = false;    // sums of gradients have all of the next update (--staleness)
    /// The workers' shares of the batch, where times do not decide them. Empty: they do.
    std::function<std::vector<std::int64_t>(std::span<const Sharer> workers)> given_shares = {};
    /// One all-reduce of `mb` MiB over `ranks`, two or more [ms].
    std::function<double(std::span<const int> ranks, double mb)> all_reduce_ms;
    /// Gradients of the units [begin, end), as they are sent [MiB]. Tied parameters count once.
    std::function<double(std::size_t begin, std::size_t end)> gradients_mb;
    /// The optimizer's step over the units [begin, end) [ms].
    std::function<double(std::size_t begin, std::size_t end, std::size_t device_class)>
        optimizer_ms;
    /// Parameters, gradients and the `ranks`-th part of the optimizer's state of the whole model
    /// [MiB]. Empty: no layout cuts the state.
    std::function<double(std::size_t device_class, std::size_t ranks)> sharded_state_mb = {};

    std::size_t ranks() const noexcept { return class_of.size(); }
    std::size_t units() const noexcept { return sizes.front().chain.units(); }
};

}  // namespace hetseq
