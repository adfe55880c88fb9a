#include "hetseq/optim/optimizer.hpp"

#include <algorithm>

namespace hetseq {

std::int64_t Optimizer::state_tensors() const {
    const auto tensors = state();
    return std::count_if(tensors.begin(), tensors.end(), [](const auto& named) {
        return named.second.dim() > 0 && named.first.find('/') == std::string::npos;
    });
}

}  // namespace hetseq
