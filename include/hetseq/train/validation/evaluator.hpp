#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"
#include "hetseq/data/order/tiling.hpp"
#include "hetseq/state/evaluation.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

class BatchPlan;
class Loader;
class Pass;
class SharePlan;
class WorkerMap;

/// Runs a model over a corpus without gradients, cut over the ranks.
class Evaluator {
public:
    /// Collective. All but `world` must outlive the evaluator; `plan` is of the loader's corpus.
    Evaluator(const HostComm& world,
              const WorkerMap& workers,
              Pass& pass,
              Loader& loader,
              const BatchPlan& plan,
              SharePlan& shares);

    /// Collective; the same result on all ranks. Throws on all ranks if a sample is in no rank's
    /// slice or in two. `most`: a micro-batch of this rank holds no more
    /// than it, nor than the shares say.
    Evaluation run(const MicroBatchCap& most = {});

private:
    std::vector<double> add_up(CorpusScorer* scorer, std::exception_ptr& failure);
    std::vector<double> sum_up(CorpusScorer* scorer);
    std::vector<double> scores(CorpusScorer& scorer, std::span<const double> sums) const;
    void request(std::int64_t batch);

    HostComm world_;
    const WorkerMap& workers_;
    Pass& pass_;
    Model& model_;
    Loader& loader_;
    const BatchPlan& plan_;
    SharePlan& shares_;
    MicroBatchCap cap_;
    Tiling tiling_;           // of the batches of a run
    std::uint64_t cuts_ = 0;  // a key of all slices so far
};

}  // namespace hetseq
