#include "keyed_dropout.hpp"

namespace hetseq {

void enter_forward(RandomnessKey, bool) {}
void leave_step() noexcept {}

}  // namespace hetseq
