#include "optimizer_checks.hpp"

#include <cmath>

#include "hetseq/util/error.hpp"

namespace hetseq::detail {

namespace {

void require(bool condition, const std::string& flag, double value, const std::string& range) {
    if (!condition)
        throw BadConfig("bad value " + std::to_string(value) + " of --" + flag,
                        "it must be " + range,
                        "change it");
}

}  // namespace

void check_weight_decay(const OptimizerOptions& options) {
    require(std::isfinite(options.weight_decay) && options.weight_decay >= 0,
            "weight-decay",
            options.weight_decay,
            "a finite number >= 0");
}

void check_betas_and_eps(const OptimizerOptions& options) {
    for (const double beta : {options.beta1, options.beta2})
        require(beta >= 0 && beta < 1, "adam-betas", beta, "two numbers in [0, 1)");
    require(std::isfinite(options.eps) && options.eps >= 0,
            "adam-eps",
            options.eps,
            "a finite number >= 0");
}

void check_rho_and_eps(const OptimizerOptions& options) {
    require(options.rho >= 0 && options.rho <= 1, "rho", options.rho, "in [0, 1]");
    require(std::isfinite(options.adadelta_eps) && options.adadelta_eps > 0,
            "adadelta-eps",
            options.adadelta_eps,
            "a finite number > 0");
}

void check_momentum(const OptimizerOptions& options) {
    require(
        options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, "in [0, 1)");
}

}  // namespace hetseq::detail
