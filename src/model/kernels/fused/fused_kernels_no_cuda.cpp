#include "hetseq/util/no_cuda.hpp"

#include "fused_kernels.hpp"

namespace hetseq::detail {

namespace {

constexpr const char* what = "a Transformer's kernels cannot run on a CUDA tensor";

}  // namespace

Probabilities attention_probabilities_cuda(const at::Tensor&, const ScorePlaces&) {
    throw_no_cuda(what);
}

at::Tensor attention_probabilities_backward_cuda(const at::Tensor&,
                                                 const at::Tensor&,
                                                 const at::Tensor&,
                                                 const ScorePlaces&) {
    throw_no_cuda(what);
}

std::vector<at::Tensor> heads_of_rows_cuda(const at::Tensor&,
                                           const at::Tensor&,
                                           const HeadPlaces&) {
    throw_no_cuda(what);
}

at::Tensor rows_of_heads_cuda(const std::vector<at::Tensor>&, const HeadPlaces&) {
    throw_no_cuda(what);
}

RowsAndSums rows_of_heads_and_sums_cuda(const std::vector<at::Tensor>&, const HeadPlaces&) {
    throw_no_cuda(what);
}

}  // namespace hetseq::detail
