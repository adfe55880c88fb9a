#include "token_places.hpp"

#include <algorithm>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/alias.h>

#include "hetseq/util/error.hpp"

namespace hetseq::detail {

TokenPlaces token_places(at::IntArrayRef sizes, const Dropout& dropout, double eps) {
    TokenPlaces places{.rows = to_size(sizes[0]), .columns = to_size(sizes[1]), .eps = eps};
    set_mask(places, dropout);
    if (dropout.p == 0)
        return places;
    places.positions = numbers_or_null(dropout.positions);
    places.rows_of_sample =
        to_size(sizes[0] / std::max<std::int64_t>(dropout.sample_ids.numel(), 1));
    HETSEQ_ASSERT(fits_token_grid(sizes[0], sizes[1]));
    return places;
}

// Below autograd it is no view, which autograd would not let be one of several outputs.
at::Tensor same_memory(const at::Tensor& x) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return at::alias(x);
}

at::Tensor gradient_or_none(const torch::autograd::variable_list& gradients, std::size_t i) {
    return i < gradients.size() && gradients[i].defined() ? gradients[i].contiguous()
                                                          : at::Tensor{};
}

}  // namespace hetseq::detail
