// This definition is alone in its object file, so an executable that has its own definition leaves
// it out.
#include "hetseq/util/process/fault_point.hpp"

namespace hetseq {

void fault_point(const char*, std::int64_t) {}

}  // namespace hetseq
