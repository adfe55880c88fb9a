#pragma once

#include <memory>

#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

/// `optimizer`, and an exponential moving average of the parameters that it steps: after each step,
/// average = decay average + (1 - decay) parameter, in the parameters' type, with `decay` in
/// (0, 1). A step that is gated out changes no average. It is cut like the optimizer's state.
std::unique_ptr<Optimizer> make_averaged(std::unique_ptr<Optimizer> optimizer,
                                         FlatParameters& parameters,
                                         double decay);

}  // namespace hetseq
