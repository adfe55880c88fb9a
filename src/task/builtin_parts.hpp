#pragma once

/// Lists the files of src/task that define parts. NAME.cpp has `void add_NAME(Parts&)`, which adds
/// its parts. A new file needs one line here.
#define HETSEQ_FILES_OF_PARTS(FILE)     \
    FILE(mnist_parts)                   \
    FILE(bert_parts)                    \
    FILE(sequence_classification_parts) \
    FILE(token_classification_parts)    \
    FILE(translation_parts)             \
    FILE(optimizers)                    \
    FILE(schedules)

namespace hetseq {

struct Parts;

#define HETSEQ_DECLARE_ADD(name) void add_##name(Parts& parts);
HETSEQ_FILES_OF_PARTS(HETSEQ_DECLARE_ADD)
#undef HETSEQ_DECLARE_ADD

}  // namespace hetseq
