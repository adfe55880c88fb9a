#include <tuple>
#include <utility>

#include "hetseq/util/option_value.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/task/parts.hpp"

#include "builtin_parts.hpp"

namespace hetseq {

namespace {

using Betas = std::pair<double, double>;

Betas read_betas(const std::string& text) {
    const auto betas = split(text, ',');
    if (betas.size() != 2)
        option_value::reject(text, "two numbers with a comma between, such as 0.9,0.999");
    return {option_value::fraction(betas[0]), option_value::fraction(betas[1])};
}

const Option<Betas>& adam_betas() {
    static const auto option =
        Option<Betas>(
            {"adam-betas", "X,X", "0.9,0.999", "decay of the mean gradient and of the mean square"},
            read_betas)
            .ignored_elsewhere();
    return option;
}

const Option<double>& adam_eps() {
    static const auto option =
        number_option("adam-eps", "1e-8", "added to the root of the mean square")
            .ignored_elsewhere();
    return option;
}

const Option<double>& adadelta_eps() {
    static const auto option =
        positive_number_option("adadelta-eps", "1e-6", "added to the mean squares under the roots")
            .ignored_elsewhere();
    return option;
}

const Option<double>& rho() {
    static const auto option =
        number_option("rho", "0.9", "decay of the mean squares", 0, 1).ignored_elsewhere();
    return option;
}

const Option<double>& momentum() {
    static const auto option =
        fraction_option("momentum", "0", "decay of the summed gradients").ignored_elsewhere();
    return option;
}

using Make = std::unique_ptr<Optimizer> (*)(FlatParameters&, const OptimizerOptions&);

OptimizerPart adam_by(Make make) {
    return [make](FlatParameters& parameters, const PartOptions& options) {
        OptimizerOptions own = options.optimizer;
        std::tie(own.beta1, own.beta2) = options.get(adam_betas());
        own.eps = options.get(adam_eps());
        return make(parameters, own);
    };
}

std::unique_ptr<Optimizer> adadelta(FlatParameters& parameters, const PartOptions& options) {
    OptimizerOptions own = options.optimizer;
    own.adadelta_eps = options.get(adadelta_eps());
    own.rho = options.get(rho());
    return make_adadelta(parameters, own);
}

std::unique_ptr<Optimizer> sgd(FlatParameters& parameters, const PartOptions& options) {
    OptimizerOptions own = options.optimizer;
    own.momentum = options.get(momentum());
    return make_sgd(parameters, own);
}

}  // namespace

void add_optimizers(Parts& parts) {
    parts.optimizers.add("adam", adam_by(make_adam), {adam_betas(), adam_eps()});
    parts.optimizers.add("adamw", adam_by(make_adamw), {adam_betas(), adam_eps()});
    parts.optimizers.add("lamb", adam_by(make_lamb), {adam_betas(), adam_eps()});
    parts.optimizers.add("adadelta", adadelta, {adadelta_eps(), rho()});
    parts.optimizers.add("sgd", sgd, {momentum()});
}

}  // namespace hetseq
