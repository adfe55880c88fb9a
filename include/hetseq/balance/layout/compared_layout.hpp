#pragma once

#include <cstddef>
#include <string>

namespace hetseq {

/// A layout that was weighed, as planned.
struct ComparedLayout {
    std::string name;       // "data parallelism on 4 ranks"
    std::size_t ranks = 0;  // that work
    double update_ms = 0;   // forward and backward, what they do not hide of the sums of gradients,
    double compute_ms = 0;  // and the optimizer
    double reduce_ms = 0;
    double memory = 0;         // that the fullest rank needs, over what it may use
    std::string why_not = {};  // it does not fit; empty: it does
};

}  // namespace hetseq
