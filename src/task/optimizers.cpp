#include "builtin_parts.hpp"

#include "hetseq/optim/optimizer.hpp"
#include "hetseq/task/parts.hpp"

namespace hetseq {

namespace {

using Make = std::unique_ptr<Optimizer> (*)(FlatParameters&, const OptimizerOptions&);

OptimizerPart with_common_options(Make make) {
    return [make](FlatParameters& parameters, const PartOptions& options) {
        return make(parameters, options.optimizer);
    };
}

}  // namespace

void add_optimizers(Parts& parts) {
    parts.optimizers.add("adam", with_common_options(make_adam));
    parts.optimizers.add("adamw", with_common_options(make_adamw));
    parts.optimizers.add("adadelta", with_common_options(make_adadelta));
    parts.optimizers.add("sgd", with_common_options(make_sgd));
}

}  // namespace hetseq
