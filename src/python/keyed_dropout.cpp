#include "keyed_dropout.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/safetensors.hpp"
#include "hetseq/util/split_mix.hpp"
#include "hetseq/model/dropout.hpp"
#include "hetseq/model/philox.hpp"

// The operators that make the randomness of a user's module a function of sample ids. Each is
// opaque to torch.compile and reads seed, update and sample ids when it runs. Their `stream` is an
// int64 scalar on the CPU that stands for (module path, number of the call): a tensor rather than a
// number, so that one compiled block can serve many modules.

namespace hetseq {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The state of the process: see `enter_forward`.
class Scope {
public:
    void enter(RandomnessKey key, bool training) {
        HETSEQ_ASSERT(key.sample_ids.dim() == 1 && key.sample_ids.scalar_type() == at::kLong);
        const std::lock_guard lock{mutex_};
        key.sample_ids = key.sample_ids.contiguous();
        key_ = std::move(key);
        training_ = training;
        ids_on_host_ = at::Tensor{};
    }

    void leave() {
        const std::lock_guard lock{mutex_};
        key_.reset();
        ids_on_host_ = at::Tensor{};
    }

    /// A forward in training is entered.
    bool is_training() const {
        const std::lock_guard lock{mutex_};
        return key_.has_value() && training_;
    }

    /// With the sample ids on `device`.
    std::optional<RandomnessKey> key_on(at::Device device) {
        const std::lock_guard lock{mutex_};
        if (!key_.has_value() || key_->sample_ids.device() == device)
            return key_;
        if (!device.is_cpu())
            return RandomnessKey{key_->seed, key_->update, key_->sample_ids.to(device)};
        if (!ids_on_host_.defined())
            ids_on_host_ = key_->sample_ids.cpu();
        return RandomnessKey{key_->seed, key_->update, ids_on_host_};
    }

    void name_stream(std::int64_t stream, std::string path) {
        const std::lock_guard lock{mutex_};
        names_[stream] = std::move(path);
    }

    std::string name_of(std::int64_t stream) const {
        const std::lock_guard lock{mutex_};
        const auto found = names_.find(stream);
        return found == names_.end() ? "an unnamed module" : found->second;
    }

private:
    mutable std::mutex mutex_;
    std::optional<RandomnessKey> key_;
    bool training_ = false;
    at::Tensor ids_on_host_;
    std::map<std::int64_t, std::string> names_;
};

Scope& scope() {
    static Scope scope;
    return scope;
}

/// Each draw has a Philox key of its own.
std::uint64_t seed_of(std::uint64_t seed, std::int64_t stream, std::int64_t draw) {
    constexpr std::uint64_t golden = 0x9E3779B97F4A7C15u;
    return split_mix(
        split_mix(static_cast<std::uint64_t>(stream) + golden * static_cast<std::uint64_t>(draw)) +
        seed);
}

RandomnessKey entered_key(at::Device device, std::string_view what, std::int64_t stream) {
    std::optional<RandomnessKey> key = scope().key_on(device);
    if (!key.has_value())
        throw BadConfig(std::string{what} + " of " + scope().name_of(stream) +
                            " ran outside of hetseq's forward and backward",
                        "its masks are functions of the sample ids of a micro-batch",
                        "call the module itself rather than a compiled or captured copy");
    return *std::move(key);
}

void check_samples(const at::Tensor& x,
                   std::int64_t samples,
                   std::int64_t rows,
                   std::string_view what,
                   std::int64_t stream) {
    if (x.dim() >= 1 && x.size(0) == samples * rows)
        return;
    throw BadConfig(
        std::string{what} + " of " + scope().name_of(stream) + " got a tensor of shape " +
            shape_text(x.sizes()) + ", and dimension 0 is not the " + std::to_string(samples) +
            (samples == 1 ? " sample" : " samples") +
            (rows == 1 ? "" : " times " + std::to_string(rows) + " heads"),
        "random numbers are functions of the sample, which lies in dimension 0",
        "give it (samples, ...): batch_first=True, and no flattening of samples with other "
        "dimensions before it");
}

at::Tensor mask(const at::Tensor& x,
                double p,
                const at::Tensor& stream,
                std::int64_t draw,
                std::int64_t rows,
                std::string_view what) {
    const at::NoGradGuard no_grad;
    const auto number = stream.item<std::int64_t>();
    const RandomnessKey key = entered_key(x.device(), what, number);
    check_samples(x, key.sample_ids.numel(), rows, what, number);
    const DropoutKey dropout{seed_of(key.seed, number, draw), key.update, 0};
    const at::ScalarType type = x.scalar_type();
    if (x.is_cpu() && (type == at::kBFloat16 || type == at::kHalf))
        return counter_dropout(x.to(at::kFloat), p, dropout, key.sample_ids).to(type);
    return counter_dropout(x, p, dropout, key.sample_ids);
}

/// A multiple of 2^-bits in [0, 1), so that rounding to x's type can't give 1.
int uniform_bits(at::ScalarType type) {
    return type == at::kBFloat16 ? 8 : type == at::kHalf ? 11 : 24;
}

at::Tensor uniform(const at::Tensor& like,
                   const at::Tensor& stream,
                   std::int64_t draw,
                   std::string_view what) {
    const auto number = stream.item<std::int64_t>();
    const RandomnessKey key = entered_key(at::kCPU, what, number);
    check_samples(like, key.sample_ids.numel(), 1, what, number);
    const std::uint64_t seed = seed_of(key.seed, number, draw);
    const PhiloxKey philox{
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
    const int bits = uniform_bits(like.scalar_type());
    const double unit = 1.0 / static_cast<double>(1 << bits);
    const at::Tensor drawn = at::empty(like.sizes(), at::kDouble);
    auto* out = drawn.mutable_data_ptr<double>();
    const auto* ids = key.sample_ids.const_data_ptr<std::int64_t>();
    const std::int64_t samples = key.sample_ids.numel();
    const std::int64_t elements = samples == 0 ? 0 : like.numel() / samples;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        const auto id = static_cast<std::uint64_t>(ids[sample]);
        for (std::int64_t e = 0; e < elements; ++e) {
            const PhiloxCounter counter{{static_cast<std::uint32_t>(e),
                                         static_cast<std::uint32_t>(id),
                                         static_cast<std::uint32_t>(id >> 32),
                                         static_cast<std::uint32_t>(key.update)}};
            out[sample * elements + e] =
                (philox4x32(counter, philox).word[0] >> (32 - bits)) * unit;
        }
    }
    return drawn.to(like.options());
}

at::Tensor mask_meta(
    const at::Tensor& x, double, const at::Tensor&, std::int64_t, std::int64_t, std::string_view) {
    return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor uniform_meta(const at::Tensor& like, const at::Tensor&, std::int64_t, std::string_view) {
    return at::empty_symint(like.sym_sizes(), like.options());
}

at::Tensor call_mask(const at::Tensor& x,
                     double p,
                     const at::Tensor& stream,
                     std::int64_t draw,
                     std::int64_t rows,
                     std::string_view what) {
    static const auto handle =
        c10::Dispatcher::singleton().findSchemaOrThrow("hetseq::mask", "").typed<decltype(mask)>();
    return handle.call(x, p, stream, draw, rows, what);
}

/// Linear in x, so backward is the function itself.
struct Mask : torch::autograd::Function<Mask> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              double p,
                              const at::Tensor& stream,
                              std::int64_t draw,
                              std::int64_t rows,
                              std::string what) {
        context->save_for_backward({stream});
        context->saved_data["p"] = p;
        context->saved_data["draw"] = draw;
        context->saved_data["rows"] = rows;
        context->saved_data["what"] = what;
        const at::AutoDispatchBelowAutograd below;
        return call_mask(x, p, stream, draw, rows, what);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const at::Tensor gradient = call_mask(gradients[0],
                                              context->saved_data["p"].toDouble(),
                                              context->get_saved_variables()[0],
                                              context->saved_data["draw"].toInt(),
                                              context->saved_data["rows"].toInt(),
                                              context->saved_data["what"].toStringRef());
        return {gradient, {}, {}, {}, {}, {}};
    }
};

at::Tensor mask_autograd(const at::Tensor& x,
                         double p,
                         const at::Tensor& stream,
                         std::int64_t draw,
                         std::int64_t rows,
                         std::string_view what) {
    return Mask::apply(x, p, stream, draw, rows, std::string{what});
}

// A CUDA graph would keep the seed, the update and the sample ids of its capture. LibTorch 2.7
// has no tag that says so.
template <class Tag>
std::vector<Tag> mask_tags() {
    if constexpr (requires { Tag::cudagraph_unsafe; })
        return {Tag::pt2_compliant_tag, Tag::cudagraph_unsafe};
    else
        return {Tag::pt2_compliant_tag};
}

}  // namespace

void enter_forward(RandomnessKey key, bool training) {
    scope().enter(std::move(key), training);
}

void leave_step() noexcept {
    scope().leave();
}

TORCH_LIBRARY_FRAGMENT(hetseq, m) {
    const std::vector<at::Tag> tags = mask_tags<at::Tag>();
    // x (n * rows, ...): dropout with probability p in [0, 1), rows [i * rows, (i + 1) * rows) of
    // sample i; kept elements are divided by the keep probability.
    m.def("mask(Tensor x, float p, Tensor stream, int draw, int rows, str what) -> Tensor", tags);
    // like (n, ...): numbers in [0, 1) of its shape and type.
    m.def("uniform(Tensor like, Tensor stream, int draw, str what) -> Tensor", tags);
    m.def("name_stream(int stream, str path) -> ()", [](std::int64_t stream, std::string path) {
        scope().name_stream(stream, std::move(path));
    });
    m.def("enter_forward(int seed, int update, Tensor sample_ids, bool training) -> ()",
          [](std::int64_t seed, std::int64_t update, const at::Tensor& ids, bool training) {
              enter_forward({static_cast<std::uint64_t>(seed), update, ids}, training);
          });
    m.def("leave_step() -> ()", [] { leave_step(); });
    m.def("is_in_training() -> bool", [] { return scope().is_training(); });
}

TORCH_LIBRARY_IMPL(hetseq, CPU, m) {
    m.impl("mask", mask);
    m.impl("uniform", uniform);
}

TORCH_LIBRARY_IMPL(hetseq, CUDA, m) {
    m.impl("mask", mask);
    m.impl("uniform", uniform);
}

TORCH_LIBRARY_IMPL(hetseq, Meta, m) {
    m.impl("mask", mask_meta);
    m.impl("uniform", uniform_meta);
}

TORCH_LIBRARY_IMPL(hetseq, Autograd, m) {
    m.impl("mask", mask_autograd);
}

// python/hetseq/randomness.py gives torch's random operators kernels at this dispatch key, and
// includes the key in the thread's set inside a forward in training only. So torch is untouched
// elsewhere, and code compiled inside is guarded by the set.
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

}  // namespace hetseq
