#include "hetseq/session/precision_choices.hpp"

namespace hetseq {

// The fuzzers parse options without LibTorch, so these are not hetseq/model/precision.hpp's; a test
// compares them.
std::vector<std::string> precision_choices() {
    return {"auto", "fp32", "fp64", "tf32", "bf16", "fp16"};
}

}  // namespace hetseq
