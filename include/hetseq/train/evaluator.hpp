#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/evaluation.hpp"

namespace hetseq {

class BatchPlan;
class Loader;
class SharePlan;

/// Runs a model over a corpus without gradients, cut over the ranks.
class Evaluator {
public:
    /// Collective. All but `world` must outlive the evaluator; `plan` is of the loader's corpus.
    Evaluator(const HostComm& world,
              Model& model,
              Loader& loader,
              const BatchPlan& plan,
              SharePlan& shares);

    /// Collective; the same result on all ranks. `most`: a micro-batch of this rank holds no more
    /// than it, nor than the shares say.
    Evaluation run(const MicroBatchCap& most = {});

private:
    std::vector<double> add_up(CorpusScorer* scorer, std::exception_ptr& failure);
    void request(std::int64_t batch);

    HostComm world_;
    Model& model_;
    Loader& loader_;
    const BatchPlan& plan_;
    SharePlan& shares_;
    MicroBatchCap cap_;
};

}  // namespace hetseq
