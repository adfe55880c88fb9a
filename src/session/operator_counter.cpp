#include "operator_counter.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// What stays known of a tensor when the operator ends.
struct TensorShape {
    std::vector<std::int64_t> sizes;
    std::int64_t numel = 0;
    std::int64_t bytes = 0;
    const void* storage = nullptr;
    Precision precision = Precision::fp32;
};

Precision precision_of(at::ScalarType type) {
    switch (type) {
        case at::kDouble:
            return Precision::fp64;
        case at::kBFloat16:
            return Precision::bf16;
        case at::kHalf:
            return Precision::fp16;
        default:
            return Precision::fp32;
    }
}

// That of a product of factors of both: fp64 if one of them has it, 16 bits if the other has fp32.
Precision joined(Precision a, Precision b) {
    return a == Precision::fp32 || b == Precision::fp64 ? b : a;
}

TensorShape shape_of(const at::Tensor& tensor) {
    TensorShape shape{tensor.sizes().vec(), tensor.numel()};
    shape.precision = precision_of(tensor.scalar_type());
    shape.bytes = static_cast<std::int64_t>(tensor.nbytes());
    if (tensor.has_storage()) {
        // An expanded tensor has more elements than memory.
        shape.bytes = std::min(shape.bytes, static_cast<std::int64_t>(tensor.storage().nbytes()));
        shape.storage = tensor.storage().unsafeGetStorageImpl();
    }
    return shape;
}

template <class Values>
std::vector<TensorShape> shapes_of(const Values& values) {
    std::vector<TensorShape> shapes;
    for (const c10::IValue& value : values) {
        if (value.isTensor() && value.toTensor().defined())
            shapes.push_back(shape_of(value.toTensor()));
        else if (value.isTensorList())
            for (const at::Tensor& tensor : value.toTensorVector())
                if (tensor.defined())
                    shapes.push_back(shape_of(tensor));
    }
    return shapes;
}

// A call that has begun.
struct Call final : at::ObserverContext {
    std::string name;
    std::vector<TensorShape> inputs;
    std::int64_t wanted_gradients = 0;  // of a convolution
    Call* outer = nullptr;
    std::size_t counted_before = 0;
    bool consists_of_others = false;
};

bool contains(const std::string& name, std::string_view part) {
    return name.find(part) != std::string::npos;
}

// (rows, inner) times (inner, columns), or a batch of such.
double product_flops(const TensorShape& left, const TensorShape& right) {
    return 2.0 * static_cast<double>(left.numel) * static_cast<double>(right.sizes.back());
}

// A value of the output takes as many multiplications as a filter has weights.
double convolution_flops(const TensorShape& output, const TensorShape& weight) {
    return 2.0 * static_cast<double>(output.numel) *
           static_cast<double>(weight.numel / std::max<std::int64_t>(weight.sizes.front(), 1));
}

// (batch, heads, length, width): the products of queries and keys, and of probabilities and values.
double attention_flops(const TensorShape& query, const TensorShape& key) {
    return 4.0 * static_cast<double>(query.numel) * static_cast<double>(*(key.sizes.rbegin() + 1));
}

double flops_of(const Call& call, const std::vector<TensorShape>& outputs) {
    const std::vector<TensorShape>& in = call.inputs;
    const std::string& name = call.name;
    if (name == "aten::mm" || name == "aten::bmm")
        return product_flops(in[0], in[1]);
    if (name == "aten::addmm" || name == "aten::baddbmm")
        return product_flops(in[1], in[2]);
    const bool is_backward = contains(name, "backward");
    if (contains(name, "scaled_dot_product") && in.size() >= 3)
        // Backward has twice as many products: each one's gradients by both of its factors.
        return is_backward ? 2 * attention_flops(in[1], in[2]) : attention_flops(in[0], in[1]);
    if (!contains(name, "conv") || in.size() < 2)
        return 0;
    if (is_backward)
        return in.size() < 3
                   ? 0
                   : static_cast<double>(call.wanted_gradients) * convolution_flops(in[0], in[2]);
    return outputs.empty() ? 0 : convolution_flops(outputs.front(), in[1]);
}

// The gradients by input and by weight, of `convolution_backward`'s mask of three.
std::int64_t wanted_gradients(const at::RecordFunction& function) {
    if (function.inputs().empty() || !function.inputs().back().isBoolList())
        return 2;
    const auto mask = function.inputs().back().toBoolList();
    return mask.size() < 2 ? 2 : std::int64_t{mask.get(0)} + std::int64_t{mask.get(1)};
}

bool is_mutable(const at::RecordFunction& function) {
    const auto schema = function.operator_schema();
    return schema && schema->is_mutable();
}

// Of hetseq's own operators each counts as one kernel, whatever it is made of on a CPU.
bool is_own(const std::string& name) {
    return name.rfind("hetseq::", 0) == 0;
}

// Prepares memory for another operator: part of that one.
bool is_helper(const std::string& name) {
    const auto helpers = {
        "aten::copy_", "aten::fill_", "aten::zero_", "aten::clone", "aten::contiguous"};
    return std::find(helpers.begin(), helpers.end(), name) != helpers.end();
}

// Changes a tensor and not its values, or takes memory that has none yet.
bool moves_nothing(const std::string& name) {
    const auto names = {"aten::resize_", "aten::set_", "aten::detach_", "aten::as_strided_"};
    return std::find(names.begin(), names.end(), name) != names.end() ||
           contains(name, "aten::empty") || contains(name, "aten::new_empty");
}

bool is_single(const TensorShape& shape) {
    return shape.numel <= 1;
}

// A view shares an input's memory. Single numbers are no work to speak of.
bool writes(const Call& call, const std::vector<TensorShape>& outputs, bool is_mutable) {
    if (moves_nothing(call.name) ||
        (std::all_of(outputs.begin(), outputs.end(), is_single) &&
         std::all_of(call.inputs.begin(), call.inputs.end(), is_single)))
        return false;
    if (is_mutable)
        return true;
    return std::any_of(outputs.begin(), outputs.end(), [&](const TensorShape& output) {
        return std::none_of(call.inputs.begin(), call.inputs.end(), [&](const TensorShape& input) {
            return input.storage == output.storage;
        });
    });
}

}  // namespace

struct OperatorCounter::State {
    static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function);
    static void end(const at::RecordFunction& function, at::ObserverContext* context);

    std::vector<OperatorWork> operators;
    std::int64_t numbers_read = 0;
    Call* innermost = nullptr;
    at::CallbackHandle callback = 0;

    static thread_local State* counting;
};

thread_local OperatorCounter::State* OperatorCounter::State::counting = nullptr;

std::unique_ptr<at::ObserverContext> OperatorCounter::State::begin(
    const at::RecordFunction& function) {
    auto call = std::make_unique<Call>();
    call->name = function.name();
    call->inputs = shapes_of(function.inputs());
    call->wanted_gradients = wanted_gradients(function);
    call->outer = std::exchange(counting->innermost, call.get());
    call->counted_before = counting->operators.size();
    return call;
}

void OperatorCounter::State::end(const at::RecordFunction& function, at::ObserverContext* context) {
    auto& call = static_cast<Call&>(*context);
    State& state = *counting;
    state.innermost = call.outer;
    if (call.name == "aten::_local_scalar_dense")
        ++state.numbers_read;
    const std::vector<TensorShape> outputs = shapes_of(function.outputs());
    const double flops = flops_of(call, outputs);
    // What it is made of on a CPU does not matter then.
    const bool is_kernel = is_own(call.name) || flops > 0;
    const bool works =
        is_kernel || (!call.consists_of_others && writes(call, outputs, is_mutable(function)));
    if (call.outer != nullptr && (call.consists_of_others || (works && !is_helper(call.name))))
        call.outer->consists_of_others = true;
    if (!works)
        return;
    OperatorWork counted{.name = call.name, .flops = flops};
    for (const auto* shapes : {&std::as_const(call.inputs), &outputs})
        for (const TensorShape& shape : *shapes) {
            counted.tensor_bytes.push_back(shape.bytes);
            counted.precision = joined(counted.precision, shape.precision);
        }
    const auto parts = state.operators.begin() + static_cast<std::ptrdiff_t>(call.counted_before);
    if (is_own(call.name))
        std::for_each(parts, state.operators.end(), [&](const OperatorWork& part) {
            counted.flops += part.flops;
            counted.tensor_bytes.insert(
                counted.tensor_bytes.end(), part.tensor_bytes.begin(), part.tensor_bytes.end());
            counted.precision = joined(counted.precision, part.precision);
        });
    state.operators.erase(parts, state.operators.end());
    state.operators.push_back(std::move(counted));
}

OperatorCounter::OperatorCounter() : state_{std::make_unique<State>()} {
    HETSEQ_ASSERT(State::counting == nullptr);
    State::counting = state_.get();
    state_->callback =
        at::addThreadLocalCallback(at::RecordFunctionCallback(State::begin, State::end)
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION}));
}

OperatorCounter::~OperatorCounter() {
    at::removeCallback(state_->callback);
    State::counting = nullptr;
}

const std::vector<OperatorWork>& OperatorCounter::operators() const noexcept {
    return state_->operators;
}

std::int64_t OperatorCounter::numbers_read() const noexcept {
    return state_->numbers_read;
}

}  // namespace hetseq
