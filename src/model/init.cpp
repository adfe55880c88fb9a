#include "hetseq/model/init.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/split_mix.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/model/philox.hpp"

namespace hetseq {

namespace {

constexpr double two_pi = 6.283185307179586476925;

/// FNV-1a of the name, folded with the seed.
std::uint64_t hash(std::uint64_t seed, std::string_view name) {
    std::uint64_t value = 0xCBF29CE484222325u;
    for (const char letter : name)
        value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
    return split_mix(value ^ (seed * 0x9E3779B97F4A7C15u));
}

/// In (0, 1), from 64 random bits.
double uniform(std::uint32_t high, std::uint32_t low) {
    const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32) | low;
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

struct Pair {
    double first, second;
};

Pair uniform_pair(const PhiloxCounter& bits, double bound) {
    return {(2 * uniform(bits.word[0], bits.word[1]) - 1) * bound,
            (2 * uniform(bits.word[2], bits.word[3]) - 1) * bound};
}

/// Box & Muller 1958.
Pair normal_pair(const PhiloxCounter& bits, double deviation) {
    const double radius = deviation * std::sqrt(-2 * std::log(uniform(bits.word[0], bits.word[1])));
    const double angle = two_pi * uniform(bits.word[2], bits.word[3]);
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// (count) fp64, elements 2i and 2i + 1 from the Philox call i.
at::Tensor draw(const InitialDistribution& distribution, std::int64_t count, std::uint64_t hashed) {
    const PhiloxKey key{
        {static_cast<std::uint32_t>(hashed), static_cast<std::uint32_t>(hashed >> 32)}};
    at::Tensor values = at::empty({count}, at::kDouble);
    auto* out = values.mutable_data_ptr<double>();
    const bool normal = distribution.kind == InitialDistribution::Kind::normal;
    at::parallel_for(0, (count + 1) / 2, 4096, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t call = begin; call < end; ++call) {
            const PhiloxCounter bits = philox4x32(
                {{static_cast<std::uint32_t>(call), static_cast<std::uint32_t>(call >> 32), 0, 0}},
                key);
            const Pair pair = normal ? normal_pair(bits, distribution.value)
                                     : uniform_pair(bits, distribution.value);
            out[2 * call] = pair.first;
            if (2 * call + 1 < count)
                out[2 * call + 1] = pair.second;
        }
    });
    return values;
}

void fill(at::Tensor& parameter, const InitialDistribution& distribution, std::uint64_t hashed) {
    switch (distribution.kind) {
        case InitialDistribution::Kind::constant:
            parameter.fill_(distribution.value);
            return;
        case InitialDistribution::Kind::elements:
            HETSEQ_ASSERT(distribution.elements.sizes() == parameter.sizes());
            parameter.copy_(distribution.elements);
            return;
        case InitialDistribution::Kind::uniform:
        case InitialDistribution::Kind::normal:
            parameter.copy_(draw(distribution, parameter.numel(), hashed).view(parameter.sizes()));
            return;
    }
}

std::set<const c10::StorageImpl*> storages_of_buffers(const Model& model) {
    std::set<const c10::StorageImpl*> storages;
    for (const at::Tensor& buffer : model.buffers())
        if (buffer.defined())
            storages.insert(buffer.storage().unsafeGetStorageImpl());
    return storages;
}

bool is_drawn(const InitialDistribution& distribution) {
    return distribution.kind == InitialDistribution::Kind::uniform ||
           distribution.kind == InitialDistribution::Kind::normal;
}

// `fill_one`: of a tensor by its name.
template <class Chosen, class FillOne>
void fill_parameters(const Model& model, const Chosen& is_chosen, const FillOne& fill_one) {
    const at::NoGradGuard no_grad;
    const auto buffers = storages_of_buffers(model);
    for (auto& [name, tensor] : model.held_tensors()) {
        if (!is_chosen(name) || !tensor.is_floating_point() ||
            buffers.count(tensor.storage().unsafeGetStorageImpl()) != 0)
            continue;
        fill_one(name, tensor);
    }
}

template <class Chosen>
void draw_parameters(const Model& model, std::uint64_t seed, const Chosen& is_chosen) {
    fill_parameters(model, is_chosen, [&](const std::string& name, at::Tensor& tensor) {
        fill(tensor, model.initial_distribution(name), hash(seed, name));
    });
}

}  // namespace

void initialise_parameters(Model& model, std::uint64_t seed) {
    draw_parameters(model, seed, [](const std::string&) { return true; });
}

void initialise_without_draws(Model& model) {
    const auto all = [](const std::string&) { return true; };
    fill_parameters(model, all, [&](const std::string& name, at::Tensor& tensor) {
        const InitialDistribution distribution = model.initial_distribution(name);
        if (is_drawn(distribution))
            tensor.zero_();
        else
            fill(tensor, distribution, 0);
    });
}

void initialise_parameters(Model& model,
                           std::uint64_t seed,
                           std::span<const std::string> stored_names) {
    draw_parameters(model, seed, [&](const std::string& name) {
        return std::find(stored_names.begin(), stored_names.end(), name) != stored_names.end();
    });
}

}  // namespace hetseq
