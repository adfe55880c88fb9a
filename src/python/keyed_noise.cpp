#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/split_mix.hpp"
#include "hetseq/model/philox.hpp"

#include "forward_scope.hpp"
#include "keyed_tags.hpp"

// The numbers that a user's module draws, keyed: see forward_scope.hpp.

namespace hetseq {

namespace {

/// What four words of Philox give.
class Distribution {
public:
    /// `kind`: "uniform", "normal" or "fraction" (see the operator below); `type`: of the result.
    Distribution(std::string_view kind, at::ScalarType type)
        : kind_{kind == "uniform"  ? Kind::uniform
                : kind == "normal" ? Kind::normal
                                   : Kind::fraction} {
        HETSEQ_ASSERT(kind_ != Kind::fraction || kind == "fraction");
        const int bits = type == at::kBFloat16 ? 8 : type == at::kHalf ? 11 : 24;
        shift_ = 32 - bits;
        unit_ = 1.0 / static_cast<double>(1 << bits);
    }

    bool is_fraction() const noexcept { return kind_ == Kind::fraction; }
    /// How many numbers `of` gives.
    std::int64_t count() const noexcept { return is_fraction() ? 2 : 4; }

    std::array<double, 4> of(const PhiloxCounter& words) const {
        switch (kind_) {
            case Kind::uniform:
                return {uniform(words.word[0]),
                        uniform(words.word[1]),
                        uniform(words.word[2]),
                        uniform(words.word[3])};
            case Kind::normal: {
                const auto [a, b] = normals(words.word[0], words.word[1]);
                const auto [c, d] = normals(words.word[2], words.word[3]);
                return {a, b, c, d};
            }
            case Kind::fraction:
                break;
        }
        return {fraction(words.word[0], words.word[1]), fraction(words.word[2], words.word[3])};
    }

private:
    enum class Kind { uniform, normal, fraction };

    // A multiple of 2^-bits in [0, 1), so that rounding to the type can't give 1.
    double uniform(std::uint32_t word) const { return (word >> shift_) * unit_; }

    // A multiple of 2^-53 and a half of it, in (0, 1).
    static double fraction(std::uint32_t high, std::uint32_t low) {
        const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 20U) | (low >> 12U);
        return (static_cast<double>(bits) + 0.5) * 0x1p-52;
    }

    // Box & Muller 1958, "A note on the generation of random normal deviates".
    static std::array<double, 2> normals(std::uint32_t first, std::uint32_t second) {
        const double radius = std::sqrt(-2 * std::log((first + 0.5) * 0x1p-32));
        const double angle = second * (0x1p-31 * std::numbers::pi);
        return {radius * std::cos(angle), radius * std::sin(angle)};
    }

    Kind kind_;
    int shift_ = 0;
    double unit_ = 1;
};

/// The numbers of one sample, a row of the innermost dimension after the other. A row's key is made
/// of the coordinates before it, and a Philox call serves several of its elements.
class SampleRows {
public:
    SampleRows(const DrawKey& key, std::vector<std::int64_t> sizes, Distribution distribution)
        : seed_{key.seed},
          update_{static_cast<std::uint32_t>(key.update)},
          sizes_{std::move(sizes)},
          columns_{sizes_.empty() ? 1 : sizes_.back()},
          elements_{c10::multiply_integers(sizes_)},
          distribution_{distribution} {}

    std::int64_t elements() const noexcept { return elements_; }

    void draw(std::uint64_t id, double* out) const {
        for (std::int64_t begin = 0; begin < elements_; begin += columns_)
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
        const std::int64_t step = distribution_.count();
        for (std::int64_t column = 0; column < columns_; column += step) {
            const PhiloxCounter counter{{static_cast<std::uint32_t>(column / step),
                                         static_cast<std::uint32_t>(id),
                                         static_cast<std::uint32_t>(id >> 32),
                                         update_}};
            const std::array<double, 4> drawn = distribution_.of(philox4x32(counter, key));
            std::copy_n(drawn.begin(), std::min(step, columns_ - column), out + column);
        }
    }

    std::uint64_t seed_;
    std::uint32_t update_;
    std::vector<std::int64_t> sizes_;  // behind the sample
    std::int64_t columns_;
    std::int64_t elements_;
    Distribution distribution_;
};

// The sizes beside the samples': where several rows of dimension 0 are one sample's, that is one
// more.
std::vector<std::int64_t> sizes_of_sample(at::IntArrayRef shape, const SampleDim& samples) {
    std::vector<std::int64_t> sizes = shape.vec();
    sizes.erase(sizes.begin() + samples.dim);
    if (samples.rows > 1)
        sizes.insert(sizes.begin(), samples.rows);
    return sizes;
}

at::ScalarType type_of(std::string_view kind, const at::Tensor& like) {
    return kind == "fraction" ? at::kDouble : like.scalar_type();
}

at::Tensor numbers(const at::Tensor& like,
                   std::string_view kind,
                   const at::Tensor& stream,
                   const at::Tensor& key,
                   const at::Tensor& ids,
                   std::int64_t draw,
                   std::string_view what) {
    ForwardScope& scope = ForwardScope::instance();
    const DrawPlace place{stream.item<std::int64_t>(), draw};
    const DrawKey drawn = draw_key(key, place);
    const Distribution distribution{kind, like.scalar_type()};
    at::Tensor values;
    if (scope.is_for_all(like.sizes(), ids.numel(), place)) {
        constexpr std::uint64_t nobody = ~std::uint64_t{0};  // no sample has this id
        values = at::empty(like.sizes(), at::kDouble);
        SampleRows(drawn, {}, distribution).draw(nobody, values.mutable_data_ptr<double>());
    } else {
        const SampleDim in = scope.samples_in(like.sizes(), ids.numel(), what, place);
        const SampleRows sample{drawn, sizes_of_sample(like.sizes(), in), distribution};
        values = at::empty(like.movedim(in.dim, 0).sizes(), at::kDouble);
        auto* const out = values.mutable_data_ptr<double>();
        const at::Tensor on_host = scope.on_host(ids).contiguous();
        const auto* const samples = on_host.const_data_ptr<std::int64_t>();
        const std::int64_t grain = 4096 / std::max<std::int64_t>(sample.elements(), 1) + 1;
        at::parallel_for(0, ids.numel(), grain, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                sample.draw(static_cast<std::uint64_t>(samples[i]), out + i * sample.elements());
        });
        values = values.movedim(0, in.dim).contiguous();
    }
    return values.to(like.options().dtype(type_of(kind, like)));
}

at::Tensor numbers_meta(const at::Tensor& like,
                        std::string_view kind,
                        const at::Tensor&,
                        const at::Tensor&,
                        const at::Tensor&,
                        std::int64_t,
                        std::string_view) {
    return at::empty_symint(like.sym_sizes(), like.options().dtype(type_of(kind, like)));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(hetseq, m) {
    const std::vector<at::Tag> tags = keyed_tags<at::Tag>();
    // like (n * rows, ...): numbers of its shape, rows [i * rows, (i + 1) * rows) of sample i, or
    // with the samples in another dimension (ForwardScope::samples_in); of one element: one number
    // for all samples of the update. `kind`: "uniform", in [0, 1), or "normal", standard normal,
    // both of like's type; "fraction", in (0, 1), fp64, 52 bits.
    m.def(
        "numbers(Tensor like, str kind, Tensor stream, Tensor key, Tensor ids, int draw, str what) "
        "-> Tensor",
        tags);
}

TORCH_LIBRARY_IMPL(hetseq, CPU, m) {
    m.impl("numbers", numbers);
}

TORCH_LIBRARY_IMPL(hetseq, CUDA, m) {
    m.impl("numbers", numbers);
}

TORCH_LIBRARY_IMPL(hetseq, Meta, m) {
    m.impl("numbers", numbers_meta);
}

}  // namespace hetseq
