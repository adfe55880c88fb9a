#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hetseq {

class Communicator;
class FlatParameters;
class Optimizer;

/// Gives the parameters the values of the average that the optimizer keeps, for a while or for
/// good. Where it keeps none, nothing is done.
class AveragedWeights {
public:
    /// All outlive it. `bucket_bytes`: that ranks send each other at a time, where each has a part
    /// of the average.
    AveragedWeights(FlatParameters& parameters,
                    const Optimizer& optimizer,
                    Communicator& communicator,
                    std::int64_t bucket_bytes);

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
    Communicator& communicator_;
    std::int64_t bucket_bytes_;
    at::Tensor own_;  // the parameters' own values, while they have the average's
};

}  // namespace hetseq
