#include "hetseq/model/autocast.hpp"

#include <map>
#include <utility>

#include <ATen/autocast_mode.h>

namespace hetseq {

// What was converted keeps the memory that it is of: its address will not be another tensor's.
struct Autocast::Narrow {
    struct Converted {
        c10::Storage of;
        at::Tensor copy;
    };

    Arithmetic arithmetic;
    std::map<const c10::StorageImpl*, Converted> by_storage = {};  // parameters, by their memory
};

thread_local Autocast::State Autocast::current;
thread_local Autocast::State KeptCasts::kept;

namespace {

Autocast::State new_state(const Arithmetic& arithmetic) {
    return autocast_type(arithmetic.precision)
               ? std::make_shared<Autocast::Narrow>(Autocast::Narrow{arithmetic})
               : nullptr;
}

}  // namespace

Autocast::Autocast(const Arithmetic& arithmetic)
    : Autocast{KeptCasts::kept != nullptr && KeptCasts::kept->arithmetic == arithmetic
                   ? KeptCasts::kept
                   : new_state(arithmetic)} {}

Autocast::Autocast(State state) {
    if (state == nullptr)
        return;
    const auto [precision, device] = state->arithmetic;
    before_ = {device,
               at::autocast::is_autocast_enabled(device),
               at::autocast::get_autocast_dtype(device),
               at::autocast::is_autocast_cache_enabled(),
               std::exchange(current, std::move(state))};
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, *autocast_type(precision));
    at::autocast::set_autocast_cache_enabled(true);
}

Autocast::~Autocast() {
    if (!before_)
        return;
    current = before_->state;
    if (at::autocast::decrement_nesting() == 0)
        at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(before_->device, before_->was_enabled);
    at::autocast::set_autocast_dtype(before_->device, before_->type);
    at::autocast::set_autocast_cache_enabled(before_->kept_casts);
}

KeptCasts::KeptCasts(const Arithmetic& arithmetic)
    : before_{std::exchange(kept, new_state(arithmetic))} {}

KeptCasts::~KeptCasts() {
    kept = std::move(before_);
}

void KeptCasts::drop() {
    if (kept != nullptr)
        kept->by_storage.clear();
}

bool has_narrow_products(at::DeviceType device) {
    return at::autocast::is_autocast_enabled(device);
}

at::ScalarType product_type(const at::Tensor& x) {
    const at::DeviceType device = x.device().type();
    return has_narrow_products(device) && x.scalar_type() == at::kFloat
               ? at::autocast::get_autocast_dtype(device)
               : x.scalar_type();
}

at::Tensor narrowed(const at::Tensor& x) {
    return x.to(product_type(x));
}

at::Tensor narrow_parameter(const at::Tensor& parameter) {
    if (Autocast::current == nullptr || !parameter.is_cuda() ||
        parameter.scalar_type() != at::kFloat)
        return narrowed(parameter.detach());
    const c10::Storage& storage = parameter.storage();
    auto& [of, copy] = Autocast::current->by_storage[storage.unsafeGetStorageImpl()];
    if (!copy.defined()) {
        const auto count = static_cast<std::int64_t>(storage.nbytes() / parameter.element_size());
        copy = narrowed(parameter.detach().as_strided({count}, {1}, 0));
        of = storage;
    }
    return copy.as_strided(parameter.sizes(), parameter.strides(), parameter.storage_offset());
}

at::Tensor at_least_fp32(const at::Tensor& x) {
    return c10::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

namespace {

ForwardResult with_wide_losses(ForwardResult result) {
    for (at::Tensor& loss : result.losses)
        loss = at_least_fp32(loss);
    return result;
}

// What comes from another process is a leaf of the graph. Autocast would keep its cast as it keeps
// a parameter's, and gradients of all its uses would be added in 16 bits. Without autocast,
// products do not take 16 bits from one who has it.
at::Tensor as_input(const at::Tensor& carried) {
    const at::Tensor input = carried.view_as(carried);
    return has_narrow_products(carried.device().type()) ? input : at_least_fp32(input);
}

}  // namespace

ForwardResult run_forward(Model& model, const MicroBatch& batch, const ForwardContext& context) {
    const Autocast autocast{model.arithmetic()};
    return with_wide_losses(model.forward(batch, context));
}

Carried run_chain_units(Model& model,
                        UnitRange units,
                        const Carried& carried,
                        const MicroBatch& batch,
                        const ForwardContext& context) {
    const Autocast autocast{model.arithmetic()};
    Carried given;
    for (const at::Tensor& tensor : carried.tensors)
        given.tensors.push_back(as_input(tensor));
    Carried next = model.run_units(units, given, batch, context);
    next.result = with_wide_losses(std::move(next.result));
    return next;
}

std::vector<Prediction> run_predict(Model& model, const MicroBatch& batch) {
    const Autocast autocast{model.arithmetic()};
    std::vector<Prediction> predictions = model.predict(batch);
    for (Prediction& prediction : predictions)
        prediction.values = at_least_fp32(prediction.values);
    return predictions;
}

}  // namespace hetseq
