#include "keyed_dropout.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/util/split_mix.hpp"
#include "hetseq/model/coordinate_dropout.hpp"
#include "hetseq/model/philox.hpp"

// The operators that make the randomness of a user's module a function of sample ids. Each is
// opaque to torch.compile, and a function of its arguments alone, so that backward and a compiled
// graph draw again by the key of the forward, whatever forward the process has entered since:
//   stream  int64 scalar on the CPU that stands for (module path, number of the call): a tensor
//           rather than a number, so that one compiled block can serve many modules
//   key     int64 (2) on the CPU: the run's seed and the update
//   ids     int64 (n): the samples of dimension 0

namespace hetseq {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The state of the process: see `enter_forward`.
class Scope {
public:
    void enter(const RandomnessKey& key, bool training) {
        HETSEQ_ASSERT(key.sample_ids.dim() == 1 && key.sample_ids.scalar_type() == at::kLong);
        const std::lock_guard lock{mutex_};
        key_ = at::tensor({static_cast<std::int64_t>(key.seed), key.update}, at::kLong);
        ids_ = key.sample_ids.contiguous();
        training_ = training;
    }

    void leave() {
        const std::lock_guard lock{mutex_};
        key_ = ids_ = at::Tensor{};
    }

    /// The key and the sample ids of the forward that is entered; nothing outside of training.
    std::vector<at::Tensor> entered_in_training() const {
        const std::lock_guard lock{mutex_};
        return key_.defined() && training_ ? std::vector{key_, ids_} : std::vector<at::Tensor>{};
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

    /// `ids` on the CPU: copied once for all draws by them.
    at::Tensor on_host(const at::Tensor& ids) {
        if (ids.is_cpu())
            return ids;
        const std::lock_guard lock{mutex_};
        if (!last_ids_.is_same(ids)) {
            ids_on_host_ = ids.cpu();
            last_ids_ = ids;
        }
        return ids_on_host_;
    }

private:
    mutable std::mutex mutex_;
    at::Tensor key_, ids_;
    bool training_ = false;
    at::Tensor last_ids_, ids_on_host_;
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

/// Why dimension 0 of `x` must be the samples, and what to do so that it is.
std::pair<std::string, std::string> advice(const at::Tensor& x, std::int64_t samples) {
    const std::string why = "random numbers are functions of the sample, which lies in dimension 0";
    if (x.dim() >= 2 && x.size(1) == samples)
        return {why, "give it (samples, ...): batch_first=True, or a transpose before it"};
    if (samples > 0 && x.size(0) > 0 && x.size(0) % samples == 0)
        return {why,
                "give it (samples, ...), without flattening samples with other dimensions before "
                "it"};
    return {why, "draw a tensor of shape (samples, ...) rather than one that all samples share"};
}

void check_samples(const at::Tensor& x,
                   std::int64_t samples,
                   std::int64_t rows,
                   std::string_view what,
                   std::int64_t stream) {
    if (x.dim() >= 1 && x.size(0) == samples * rows)
        return;
    const std::string where = std::string{what} + " of " + scope().name_of(stream);
    const std::string count = std::to_string(samples) + (samples == 1 ? " sample" : " samples");
    if (x.dim() == 0)
        throw BadConfig(where + " drew one number for all " + count + " of a micro-batch",
                        "as layerdrop does, but random numbers are functions of the sample here",
                        "set layerdrop to 0, or draw of shape (samples, ...)");
    const auto [why, what_to_do] = advice(x, samples);
    throw BadConfig(where + " got a tensor of shape " + shape_text(x.sizes()) +
                        ", and dimension 0 is not the " + count +
                        (rows == 1 ? "" : " times " + std::to_string(rows) + " heads"),
                    why,
                    what_to_do);
}

struct Key {
    std::uint64_t seed = 0;  // of the draw
    std::int64_t update = 0;
};

Key key_of(const at::Tensor& key, std::int64_t stream, std::int64_t draw) {
    HETSEQ_ASSERT(key.is_cpu() && key.scalar_type() == at::kLong && key.numel() == 2);
    const auto* numbers = key.const_data_ptr<std::int64_t>();
    return {seed_of(static_cast<std::uint64_t>(numbers[0]), stream, draw), numbers[1]};
}

at::Tensor mask(const at::Tensor& x,
                double p,
                const at::Tensor& stream,
                const at::Tensor& key,
                const at::Tensor& ids,
                std::int64_t draw,
                std::int64_t rows,
                std::string_view what) {
    const auto number = stream.item<std::int64_t>();
    check_samples(x, ids.numel(), rows, what, number);
    const Key drawn = key_of(key, number, draw);
    const auto drop = [&](const at::Tensor& samples) {
        return coordinate_dropout(
            samples, p, {drawn.seed, drawn.update, 0}, ids.to(x.device()).contiguous());
    };
    const at::ScalarType type = x.scalar_type();
    const bool is_narrow = x.is_cpu() && (type == at::kBFloat16 || type == at::kHalf);
    const at::Tensor from = is_narrow ? x.to(at::kFloat) : x;
    if (rows == 1)
        return drop(from).to(type);
    return drop(from.unflatten(0, {ids.numel(), rows})).flatten(0, 1).to(type);
}

/// A multiple of 2^-bits in [0, 1), so that rounding to x's type can't give 1.
int uniform_bits(at::ScalarType type) {
    return type == at::kBFloat16 ? 8 : type == at::kHalf ? 11 : 24;
}

/// The numbers of one sample, a row of the innermost dimension after the other. A row's key is made
/// of the coordinates before it, and a Philox call serves four of its elements.
class UniformRows {
public:
    UniformRows(const Key& key, at::IntArrayRef sizes, int bits)
        : seed_{key.seed},
          update_{static_cast<std::uint32_t>(key.update)},
          sizes_{sizes.slice(1)},
          columns_{sizes_.empty() ? 1 : sizes_.back()},
          shift_{32 - bits},
          unit_{1.0 / static_cast<double>(1 << bits)} {}

    std::int64_t elements() const { return c10::multiply_integers(sizes_); }

    void draw(std::uint64_t id, double* out) const {
        for (std::int64_t begin = 0; begin < elements(); begin += columns_)
            draw_row(key_of_row(begin / columns_), id, out + begin);
    }

private:
    PhiloxKey key_of_row(std::int64_t row) const {
        constexpr std::uint64_t golden = 0x9E3779B97F4A7C15u;
        std::uint64_t seed = seed_;
        for (std::size_t d = sizes_.size(); d-- > 1;) {
            const std::int64_t size = sizes_[d - 1];
            seed = split_mix(seed + golden * static_cast<std::uint64_t>(row % size + 1));
            row /= size;
        }
        return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
    }

    void draw_row(const PhiloxKey& key, std::uint64_t id, double* out) const {
        for (std::int64_t column = 0; column < columns_; column += 4) {
            const PhiloxCounter counter{{static_cast<std::uint32_t>(column / 4),
                                         static_cast<std::uint32_t>(id),
                                         static_cast<std::uint32_t>(id >> 32),
                                         update_}};
            const PhiloxCounter drawn = philox4x32(counter, key);
            for (std::int64_t i = 0; i < std::min<std::int64_t>(4, columns_ - column); ++i)
                out[column + i] = (drawn.word[i] >> shift_) * unit_;
        }
    }

    std::uint64_t seed_;
    std::uint32_t update_;
    at::IntArrayRef sizes_;
    std::int64_t columns_;
    int shift_;
    double unit_;
};

at::Tensor uniform(const at::Tensor& like,
                   const at::Tensor& stream,
                   const at::Tensor& key,
                   const at::Tensor& ids,
                   std::int64_t draw,
                   std::string_view what) {
    const auto number = stream.item<std::int64_t>();
    check_samples(like, ids.numel(), 1, what, number);
    const UniformRows rows{
        key_of(key, number, draw), like.sizes(), uniform_bits(like.scalar_type())};
    const at::Tensor drawn = at::empty(like.sizes(), at::kDouble);
    const at::Tensor on_host = scope().on_host(ids).contiguous();
    const auto* samples = on_host.const_data_ptr<std::int64_t>();
    auto* out = drawn.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < ids.numel(); ++i)
        rows.draw(static_cast<std::uint64_t>(samples[i]), out + i * rows.elements());
    return drawn.to(like.options());
}

at::Tensor mask_meta(const at::Tensor& x,
                     double,
                     const at::Tensor&,
                     const at::Tensor&,
                     const at::Tensor&,
                     std::int64_t,
                     std::int64_t,
                     std::string_view) {
    return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor uniform_meta(const at::Tensor& like,
                        const at::Tensor&,
                        const at::Tensor&,
                        const at::Tensor&,
                        std::int64_t,
                        std::string_view) {
    return at::empty_symint(like.sym_sizes(), like.options());
}

at::Tensor call_mask(const at::Tensor& x,
                     double p,
                     const at::Tensor& stream,
                     const at::Tensor& key,
                     const at::Tensor& ids,
                     std::int64_t draw,
                     std::int64_t rows,
                     std::string_view what) {
    static const auto handle =
        c10::Dispatcher::singleton().findSchemaOrThrow("hetseq::mask", "").typed<decltype(mask)>();
    return handle.call(x, p, stream, key, ids, draw, rows, what);
}

/// Linear in x, so backward is the function itself.
struct Mask : torch::autograd::Function<Mask> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              double p,
                              const at::Tensor& stream,
                              const at::Tensor& key,
                              const at::Tensor& ids,
                              std::int64_t draw,
                              std::int64_t rows,
                              std::string what) {
        context->save_for_backward({stream, key, ids});
        context->saved_data["p"] = p;
        context->saved_data["draw"] = draw;
        context->saved_data["rows"] = rows;
        context->saved_data["what"] = what;
        const at::AutoDispatchBelowAutograd below;
        return call_mask(x, p, stream, key, ids, draw, rows, what);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor gradient = call_mask(gradients[0],
                                              context->saved_data["p"].toDouble(),
                                              saved[0],
                                              saved[1],
                                              saved[2],
                                              context->saved_data["draw"].toInt(),
                                              context->saved_data["rows"].toInt(),
                                              context->saved_data["what"].toStringRef());
        return {gradient, {}, {}, {}, {}, {}, {}, {}};
    }
};

at::Tensor mask_autograd(const at::Tensor& x,
                         double p,
                         const at::Tensor& stream,
                         const at::Tensor& key,
                         const at::Tensor& ids,
                         std::int64_t draw,
                         std::int64_t rows,
                         std::string_view what) {
    return Mask::apply(x, p, stream, key, ids, draw, rows, std::string{what});
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

void enter_forward(const RandomnessKey& key, bool training) {
    scope().enter(key, training);
}

void leave_step() noexcept {
    scope().leave();
}

TORCH_LIBRARY_FRAGMENT(hetseq, m) {
    const std::vector<at::Tag> tags = mask_tags<at::Tag>();
    // x (n * rows, ...): dropout with probability p in [0, 1), rows [i * rows, (i + 1) * rows) of
    // sample i; kept elements are divided by the keep probability.
    m.def(
        "mask(Tensor x, float p, Tensor stream, Tensor key, Tensor ids, int draw, int rows, "
        "str what) -> Tensor",
        tags);
    // like (n, ...): numbers in [0, 1) of its shape and type.
    m.def(
        "uniform(Tensor like, Tensor stream, Tensor key, Tensor ids, int draw, str what) -> Tensor",
        tags);
    m.def("name_stream(int stream, str path) -> ()", [](std::int64_t stream, std::string path) {
        scope().name_stream(stream, std::move(path));
    });
    m.def("enter_forward(int seed, int update, Tensor sample_ids, bool training) -> ()",
          [](std::int64_t seed, std::int64_t update, const at::Tensor& ids, bool training) {
              enter_forward({static_cast<std::uint64_t>(seed), update, ids}, training);
          });
    m.def("leave_step() -> ()", [] { leave_step(); });
    // `key` and `ids` of the forward in training that is entered, or nothing.
    m.def("entered_key() -> Tensor[]", [] { return scope().entered_in_training(); });
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
