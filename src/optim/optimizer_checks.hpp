#pragma once

#include "hetseq/optim/optimizer.hpp"

namespace hetseq::detail {

/// Throw BadConfig, naming the option, for a value out of range.
void check_weight_decay(const OptimizerOptions& options);
void check_betas_and_eps(const OptimizerOptions& options);
void check_rho_and_eps(const OptimizerOptions& options);
void check_momentum(const OptimizerOptions& options);

}  // namespace hetseq::detail
