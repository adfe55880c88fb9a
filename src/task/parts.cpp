#include "hetseq/task/parts.hpp"

#include "hetseq/task/builtin_parts.hpp"

namespace hetseq {

Parts builtin_parts() {
    Parts parts;
    add_mnist_parts(parts);
    add_bert_parts(parts);
    add_optimizers(parts);
    add_schedules(parts);
    return parts;
}

}  // namespace hetseq
