#include "hetseq/session/ranks/small_optimizer.hpp"

#include <string>
#include <utility>

#include <ATen/ops/zeros.h>

#include "hetseq/model/tensor_registry.hpp"
#include "hetseq/optim/averaged_optimizer.hpp"
#include "hetseq/task/parts.hpp"

namespace hetseq {

SmallOptimizer small_optimizer(const Parts& parts, const PartOptions& options) {
    TensorRegistry some;
    some.register_parameter("values", at::zeros({1}));
    SmallOptimizer small;
    small.parameters =
        std::make_unique<FlatParameters>(some, [](const std::string&) { return true; });
    small.optimizer =
        options.optimizer.name == "python"
            ? make_adam(*small.parameters, {})
            : parts.optimizers.get(options.optimizer.name)(*small.parameters, options);
    if (options.optimizer.ema > 0)
        small.optimizer =
            make_averaged(std::move(small.optimizer), *small.parameters, options.optimizer.ema);
    return small;
}

}  // namespace hetseq
