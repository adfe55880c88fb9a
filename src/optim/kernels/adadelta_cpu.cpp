#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "adadelta.hpp"
#include "adadelta_loop.hpp"

namespace hetseq::detail {

void adadelta_cpu(const AdadeltaTensors& tensors,
                  const at::Tensor& closed,
                  const AdadeltaStep& step) {
    if (closed.defined() && *closed.const_data_ptr<float>() > 0)
        return;
    AT_DISPATCH_FLOATING_TYPES(tensors.values.scalar_type(), "adadelta", [&] {
        auto* value = tensors.values.mutable_data_ptr<scalar_t>();
        const auto* gradient = tensors.gradients.const_data_ptr<scalar_t>();
        auto* square_avg = tensors.square_avg.mutable_data_ptr<scalar_t>();
        auto* acc_delta = tensors.acc_delta.mutable_data_ptr<scalar_t>();
        at::parallel_for(
            0, tensors.values.numel(), 32768, [&](std::int64_t begin, std::int64_t end) {
                adadelta_loop(value + begin,
                              gradient + begin,
                              square_avg + begin,
                              acc_delta + begin,
                              end - begin,
                              step);
            });
    });
}

}  // namespace hetseq::detail
