#pragma once

#include <string>

#include "hetseq/options/options_of.hpp"

namespace hetseq {

struct OptimizerOptions {
    std::string name = "adam";          // of a part (hetseq/task/parts.hpp)
    double weight_decay = 0;            // added to the gradient; adamw, lamb: decoupled from it
    double beta1 = 0.9, beta2 = 0.999;  // adam, adamw, lamb
    double eps = 1e-8;                  // adam, adamw, lamb
    double adadelta_eps = 1e-6;         // adadelta
    double rho = 0.9;                   // adadelta
    double momentum = 0;                // sgd
    double ema = 0;                     // decay of the parameters' moving average; 0: none
};

/// Those that all optimizers share; each declares its own (hetseq/task/parts.hpp).
OptionsOf<OptimizerOptions> optimizer_options();

}  // namespace hetseq
