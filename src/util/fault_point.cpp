// Alone in its object file: an executable that brings a definition of its own leaves this one out.
#include "hetseq/util/fault_point.hpp"

namespace hetseq {

void fault_point(const char*, std::int64_t) {}

}  // namespace hetseq
