#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/train/watch/run_control.hpp"

namespace hetseq {

/// A rank's notes to the others, sent when it has its next share.
struct UpdateNotes {
    double compute_ms = 0;  // own time of the last update; 0: none that counts
    double update_ms = 0;   // own time of an update beside that; waiting is not part of either
    std::span<const std::int64_t> allocation = {};  // rank 0's alone: how to cut full batches from
                                                    // now on; empty: as before
    std::int64_t micro_batch = 0;  // that memory holds, where the rank ran out of it
    Requests requests = {};
    GlobalBatch batch = {};  // of the share
    Slice slice = {};        // this rank's part of the batch
};

/// The one small host reduction of an update. It carries the global weights of the loss terms,
/// whether every rank has its share, whether these tile the batch, and the ranks' notes. It is
/// posted when the share is loaded, and complete before the first backward.
class UpdateAgreement {
public:
    /// Collective over `world`.
    UpdateAgreement(const HostComm& world, std::size_t loss_terms);

    /// Collective, returns at once. `weights`: of this rank's share, by loss term. `failure`: what
    /// kept this rank from having its share, or null.
    void post(std::span<const double> weights,
              std::exception_ptr failure,
              const UpdateNotes& notes = {});
    /// Waits for what was posted. If any rank failed, all ranks throw its error. If a sample of the
    /// batch is in no rank's slice or in two, all ranks throw an error that names the ranks.
    void wait();

    /// W_j of the update, by loss term; valid after `wait`.
    std::span<const double> weights() const { return std::span(values_).first(loss_terms_); }
    /// Each rank's noted time; valid after `wait`.
    std::span<const double> compute_ms() const { return by_rank(0); }
    /// All ranks' requests, summed; valid after `wait`.
    Requests requests() const;
    /// Each rank's noted time beside that; valid after `wait`.
    std::span<const double> update_ms() const { return by_rank(3); }
    /// Each rank's noted micro-batch; valid after `wait`.
    std::span<const double> micro_batches() const { return by_rank(2); }
    /// Rank 0's noted allocation, if any; valid after `wait`.
    std::optional<std::vector<std::int64_t>> allocation() const;

private:
    std::span<const double> by_rank(std::size_t list) const;

    HostComm comm_;
    std::size_t loss_terms_;
    // weights by loss term, the number of ranks that failed, five kinds of requests, the tiling's
    // two terms; by rank: times, units, micro-batches, times beside those
    std::vector<double> values_;
    GlobalBatch batch_;
    Slice slice_;
    std::exception_ptr failure_;
    HostRequest pending_;
    bool posted_ = false;
};

}  // namespace hetseq
