#include "hetseq/task/parts.hpp"

#include "builtin_parts.hpp"

namespace hetseq {

Parts builtin_parts() {
    Parts parts;
#define HETSEQ_ADD(name) add_##name(parts);
    HETSEQ_FILES_OF_PARTS(HETSEQ_ADD)
#undef HETSEQ_ADD
    return parts;
}

}  // namespace hetseq
