#pragma once

#include <ATen/core/Tensor.h>

namespace hetseq {

class FlatParameters;
class Optimizer;
class ValueGather;

/// Gives the parameters the values of the average that the optimizer keeps, for a while or for
/// good. Where it keeps none, nothing is done.
class AveragedWeights {
public:
    /// All outlive it. `gather`: of the parameters' values, where each rank has a part of the
    /// average.
    AveragedWeights(FlatParameters& parameters, const Optimizer& optimizer, ValueGather& gather);

    bool exist() const;
    /// Collective where the state is cut over ranks. Nobody else may use the parameters' values
    /// meanwhile. Takes memory for a copy of them until `take_out`.
    void put_in();
    /// The parameters have their own values again.
    void take_out();
    /// `put_in` for good.
    void stay();

private:
    void fill();

    FlatParameters& parameters_;
    const Optimizer& optimizer_;
    ValueGather& gather_;
    at::Tensor own_;  // the parameters' own values, while they have the average's
};

}  // namespace hetseq
