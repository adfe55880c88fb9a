#pragma once

namespace hetseq {

struct Parts;

/// Each adds what its file defines.
void add_mnist_parts(Parts& parts);
void add_bert_parts(Parts& parts);
void add_optimizers(Parts& parts);
void add_schedules(Parts& parts);

}  // namespace hetseq
