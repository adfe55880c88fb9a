#include "hetseq/optim/optimizer.hpp"
#include "hetseq/task/builtin_parts.hpp"
#include "hetseq/task/parts.hpp"

namespace hetseq {

void add_optimizers(Parts& parts) {
    parts.optimizers.add("adam", make_adam);
    parts.optimizers.add("adamw", make_adamw);
    parts.optimizers.add("adadelta", make_adadelta);
    parts.optimizers.add("sgd", make_sgd);
}

}  // namespace hetseq
