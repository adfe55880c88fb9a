#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

class BatchPlan;
class Loader;
class SharePlan;

/// Losses and metrics over a whole corpus, each normalised by its own global weight.
struct Evaluation {
    struct Value {
        std::string name;
        double value = 0;
    };
    std::vector<Value> losses;  // by loss term
    std::vector<Value> metrics;
    std::int64_t samples = 0;
    double seconds = 0;

    /// The sum of the terms' losses.
    double loss() const;
};

/// Runs a model over a corpus without gradients, cut over the ranks.
class Evaluator {
public:
    /// Collective. All but `world` must outlive the evaluator; `plan` is of the loader's corpus.
    Evaluator(const HostComm& world,
              Model& model,
              Loader& loader,
              const BatchPlan& plan,
              SharePlan& shares);

    /// Collective; the same result on all ranks. `most_samples`: a micro-batch of this rank has no
    /// more; 0: as the shares say.
    Evaluation run(std::int64_t most_samples = 0);

private:
    std::vector<double> add_up(std::exception_ptr& failure);
    void request(std::int64_t batch);

    HostComm world_;
    Model& model_;
    Loader& loader_;
    const BatchPlan& plan_;
    SharePlan& shares_;
    std::int64_t micro_batch_ = 0;
};

}  // namespace hetseq
