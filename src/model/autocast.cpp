#include "hetseq/model/autocast.hpp"

#include <ATen/autocast_mode.h>

namespace hetseq {

Autocast::Autocast(const Arithmetic& arithmetic) {
    const auto type = autocast_type(arithmetic.precision);
    if (!type)
        return;
    before_ = {arithmetic.device,
               at::autocast::is_autocast_enabled(arithmetic.device),
               at::autocast::get_autocast_dtype(arithmetic.device),
               at::autocast::is_autocast_cache_enabled()};
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(arithmetic.device, true);
    at::autocast::set_autocast_dtype(arithmetic.device, *type);
    at::autocast::set_autocast_cache_enabled(true);
}

Autocast::~Autocast() {
    if (!before_)
        return;
    if (at::autocast::decrement_nesting() == 0)
        at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(before_->device, before_->was_enabled);
    at::autocast::set_autocast_dtype(before_->device, before_->type);
    at::autocast::set_autocast_cache_enabled(before_->kept_casts);
}

at::Tensor at_least_fp32(const at::Tensor& x) {
    return c10::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

ForwardResult run_forward(Model& model, const MicroBatch& batch, const ForwardContext& context) {
    const Autocast autocast{model.arithmetic()};
    ForwardResult result = model.forward(batch, context);
    for (at::Tensor& loss : result.losses)
        loss = at_least_fp32(loss);
    return result;
}

std::vector<Prediction> run_predict(Model& model, const MicroBatch& batch) {
    const Autocast autocast{model.arithmetic()};
    std::vector<Prediction> predictions = model.predict(batch);
    for (Prediction& prediction : predictions)
        prediction.values = at_least_fp32(prediction.values);
    return predictions;
}

}  // namespace hetseq
