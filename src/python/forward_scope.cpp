#include "forward_scope.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/split_mix.hpp"

#include "keyed_tags.hpp"

namespace hetseq {

namespace {

constexpr std::uint64_t evaluation = 0x4556414C55415445u;  // "EVALUATE"

/// Why dimension 0 of `shape` must be the samples, and what to do so that it is.
std::pair<std::string, std::string> advice(at::IntArrayRef shape, std::int64_t samples) {
    const std::string why = "random numbers are functions of the sample, which lies in dimension 0";
    if (shape.size() >= 2 && shape[1] == samples)
        return {why + " unless the self-test saw them in another",
                "give it (samples, ...), by batch_first=True or a transpose before it, or leave "
                "the self-test on"};
    return {
        why,
        "draw a tensor of shape (samples, ...), say whose its rows are (hetseq.rows), or draw one "
        "number for all of an update, torch.rand(()), rather than a tensor that all samples "
        "share"};
}

/// An id in [0, 2^48) for each row: of its sample, `ids[owner[i]]`, and of its number among the
/// sample's rows.
at::Tensor ids_of_rows(const at::Tensor& ids, const at::Tensor& owner) {
    if (owner.dim() != 1 || owner.scalar_type() != at::kLong)
        throw BadConfig("hetseq.rows got an owner of shape " + shape_text(owner.sizes()) +
                            " and type " + std::string(c10::toString(owner.scalar_type())),
                        "it has the place of each row's sample in the micro-batch",
                        "give int64 of shape (rows)");
    constexpr std::uint64_t golden = 0x9E3779B97F4A7C15u;
    const at::Tensor samples = ForwardScope::instance().on_host(ids).contiguous();
    const at::Tensor owners = owner.cpu().contiguous();
    const at::Tensor rows = at::empty({owner.numel()}, at::kLong);
    std::vector<std::uint64_t> seen(static_cast<std::size_t>(samples.numel()));
    for (std::int64_t i = 0; i < owner.numel(); ++i) {
        const std::int64_t sample = owners.const_data_ptr<std::int64_t>()[i];
        if (sample < 0 || sample >= samples.numel())
            throw BadConfig("hetseq.rows got the owner " + std::to_string(sample),
                            "the micro-batch has " + count_text(samples.numel(), "sample"),
                            "give each row's sample as its place in the micro-batch, from 0");
        const auto id = static_cast<std::uint64_t>(samples.const_data_ptr<std::int64_t>()[sample]);
        const std::uint64_t number = ++seen[static_cast<std::size_t>(sample)];
        rows.mutable_data_ptr<std::int64_t>()[i] =
            static_cast<std::int64_t>(split_mix(split_mix(id) + golden * number) >> 16U);
    }
    return rows.to(ids.device());
}

using Shapes = std::map<std::int64_t, std::vector<std::int64_t>>;  // by the number of samples

std::int64_t first_size(at::IntArrayRef shape) {
    return shape.empty() ? 0 : shape[0];
}

bool has_dim(at::IntArrayRef shape, std::int64_t dim, std::int64_t samples) {
    return dim < std::ssize(shape) && shape[static_cast<std::size_t>(dim)] == samples;
}

// Of dimension 0; 0: the samples do not share it evenly.
std::int64_t rows_of_each(at::IntArrayRef shape, std::int64_t samples) {
    const std::int64_t rows = first_size(shape);
    return samples > 0 && rows % samples == 0 ? rows / samples : 0;
}

// The first dimension behind 0 that is the number of samples in all of `shapes`; 0: none.
std::int64_t first_dim_of(const Shapes& shapes) {
    const auto& shape = shapes.begin()->second;
    for (std::int64_t dim = 1; dim < std::ssize(shape); ++dim)
        if (std::all_of(shapes.begin(), shapes.end(), [&](const auto& noted) {
                return has_dim(noted.second, dim, noted.first);
            }))
            return dim;
    return 0;
}

// Where the samples are in tensors that were drawn for several numbers of them: in dimension 0 if
// each sample always has as many rows of it.
std::int64_t lasting_dim(const Shapes& shapes) {
    const auto& [first, shape] = *shapes.begin();
    const std::int64_t rows = rows_of_each(shape, first);
    const bool is_first =
        rows > 0 && std::all_of(shapes.begin(), shapes.end(), [&](const auto& noted) {
            return rows_of_each(noted.second, noted.first) == rows;
        });
    return is_first ? 0 : first_dim_of(shapes);
}

at::Tensor ids_of_rows_meta(const at::Tensor& ids, const at::Tensor& owner) {
    return at::empty_symint(owner.sym_sizes(), ids.options());
}

}  // namespace

ForwardScope& ForwardScope::instance() {
    static ForwardScope scope;
    return scope;
}

void ForwardScope::enter(const RandomnessKey& key, bool training) {
    HETSEQ_ASSERT(key.sample_ids.dim() == 1 && key.sample_ids.scalar_type() == at::kLong);
    const std::uint64_t seed = training ? key.seed : split_mix(key.seed ^ evaluation);
    const std::lock_guard lock{mutex_};
    key_ = at::tensor({static_cast<std::int64_t>(seed), training ? key.update : 0}, at::kLong);
    ids_ = key.sample_ids.contiguous();
    groups_ = key.groups;
    trains_ = training;
}

void ForwardScope::leave() {
    const std::lock_guard lock{mutex_};
    key_ = ids_ = at::Tensor{};
    groups_ = {};
}

std::vector<at::Tensor> ForwardScope::entered() const {
    const std::lock_guard lock{mutex_};
    return key_.defined() ? std::vector{key_, ids_} : std::vector<at::Tensor>{};
}

bool ForwardScope::trains() const {
    const std::lock_guard lock{mutex_};
    return trains_;
}

std::vector<std::int64_t> ForwardScope::groups() const {
    const std::lock_guard lock{mutex_};
    if (groups_.sizes.empty())
        return {};
    std::vector<std::int64_t> numbers{groups_.first, groups_.total};
    numbers.insert(numbers.end(), groups_.sizes.begin(), groups_.sizes.end());
    return numbers;
}

void ForwardScope::name_stream(std::int64_t stream, std::string path, bool has_heads) {
    const std::lock_guard lock{mutex_};
    names_[stream] = std::move(path);
    if (has_heads)
        with_heads_.insert(stream);
}

std::string ForwardScope::name_of(std::int64_t stream) const {
    const std::lock_guard lock{mutex_};
    const auto found = names_.find(stream);
    return found == names_.end() ? "an unnamed module" : found->second;
}

at::Tensor ForwardScope::on_host(const at::Tensor& ids) {
    if (ids.is_cpu())
        return ids;
    const std::lock_guard lock{mutex_};
    if (!last_ids_.is_same(ids)) {
        ids_on_host_ = ids.cpu();
        last_ids_ = ids;
    }
    return ids_on_host_;
}

bool ForwardScope::is_for_all(at::IntArrayRef shape, std::int64_t samples, const DrawPlace& place) {
    if (shape.empty())
        return true;
    if (!std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size == 1; }))
        return false;
    const std::lock_guard lock{mutex_};
    if (samples > 1)
        for_all_.insert(place);
    return for_all_.count(place) > 0;
}

SampleDim ForwardScope::samples_in(at::IntArrayRef shape,
                                   std::int64_t samples,
                                   std::string_view what,
                                   const DrawPlace& place) {
    std::unique_lock lock{mutex_};
    if (notes_) {
        Noted& noted = noted_[place];
        noted.what = what;
        noted.shapes.emplace(samples, shape.vec());
    }
    const std::int64_t dim = dim_of_samples(shape, samples, place);
    if (dim > 0 && has_dim(shape, dim, samples))
        return {dim, 1};
    if (has_dim(shape, 0, 0) && samples == 0)
        return {};
    const std::int64_t rows = dim == 0 ? rows_of_each(shape, samples) : 0;
    if (rows > 0 && believes_rows(rows, place))
        return {0, rows};
    lock.unlock();
    auto [why, what_to_do] = advice(shape, samples);
    if (rows > 0)
        why = "the self-test did not see that each sample has " + std::to_string(rows) +
              " rows of it, and not all of them together";
    throw BadConfig(std::string{what} + " of " + name_of(place.stream) + " got a tensor of shape " +
                        shape_text(shape) + ", and dimension 0 is not the " +
                        count_text(samples, "sample"),
                    why,
                    what_to_do);
}

std::int64_t ForwardScope::dim_of_samples(at::IntArrayRef shape,
                                          std::int64_t samples,
                                          const DrawPlace& place) const {
    const auto found = noted_.find(place);
    if (found == noted_.end() || with_heads_.count(place.stream) > 0)
        return 0;
    const Shapes& shapes = found->second.shapes;
    if (shapes.size() > 1)
        return lasting_dim(shapes);
    // The first forward of a self-test, whose numbers are not compared with others.
    return notes_ && rows_of_each(shape, samples) == 0 ? first_dim_of({{samples, shape.vec()}}) : 0;
}

bool ForwardScope::believes_rows(std::int64_t rows, const DrawPlace& place) const {
    if (notes_ || rows == 1 || !has_noted_ || with_heads_.count(place.stream) > 0)
        return true;
    const auto noted = noted_.find(place);
    return noted != noted_.end() && noted->second.shapes.size() > 1 &&
           first_size(noted->second.shapes.begin()->second) <
               first_size(noted->second.shapes.rbegin()->second);
}

void ForwardScope::note_draws(bool on) {
    const std::lock_guard lock{mutex_};
    notes_ = on;
    has_noted_ = !on;
    if (on)
        noted_.clear();
}

void ForwardScope::forget_draws() {
    const std::lock_guard lock{mutex_};
    notes_ = has_noted_ = false;
    noted_.clear();
    for_all_.clear();
    names_.clear();
    with_heads_.clear();
}

std::vector<std::string> ForwardScope::unsampled_draws() const {
    std::vector<std::string> found;
    const std::lock_guard lock{mutex_};
    for (const auto& [place, noted] : noted_) {
        const auto& [few, shape_of_few] = *noted.shapes.begin();
        const auto& [many, shape_of_many] = *noted.shapes.rbegin();
        const std::int64_t rows = first_size(shape_of_few);
        if (few == many || rows != first_size(shape_of_many) || lasting_dim(noted.shapes) > 0)
            continue;
        const auto name = names_.find(place.stream);
        found.push_back(noted.what + " of " +
                        (name == names_.end() ? "an unnamed module" : name->second) + " drew " +
                        count_text(rows, "row") + " for " + count_text(many, "sample") +
                        " and for " + std::to_string(few));
    }
    return found;
}

DrawKey draw_key(const at::Tensor& key, const DrawPlace& place) {
    HETSEQ_ASSERT(key.is_cpu() && key.scalar_type() == at::kLong && key.numel() == 2);
    constexpr std::uint64_t golden = 0x9E3779B97F4A7C15u;
    const auto* numbers = key.const_data_ptr<std::int64_t>();
    const std::uint64_t of_place =
        static_cast<std::uint64_t>(place.stream) + golden * static_cast<std::uint64_t>(place.draw);
    return {split_mix(split_mix(of_place) + static_cast<std::uint64_t>(numbers[0])), numbers[1]};
}

void enter_forward(const RandomnessKey& key, bool training) {
    ForwardScope::instance().enter(key, training);
}

void leave_step() noexcept {
    ForwardScope::instance().leave();
}

TORCH_LIBRARY_FRAGMENT(hetseq, m) {
    m.def("name_stream(int stream, str path, bool has_heads) -> ()",
          [](std::int64_t stream, std::string path, bool has_heads) {
              ForwardScope::instance().name_stream(stream, std::move(path), has_heads);
          });
    // `groups`: the number of the first, their total in the batch, and their sizes; or nothing.
    m.def(
        "enter_forward(int seed, int update, Tensor sample_ids, bool training, int[] groups=[]) "
        "-> ()",
        [](std::int64_t seed,
           std::int64_t update,
           const at::Tensor& ids,
           bool training,
           at::IntArrayRef groups) {
            RandomnessKey key{static_cast<std::uint64_t>(seed), update, ids};
            if (groups.size() > 2)
                key.groups = {groups[0], groups[1], groups.slice(2).vec()};
            enter_forward(key, training);
        });
    m.def("leave_step() -> ()", [] { leave_step(); });
    // `key` and `ids` of the forward that is entered, or nothing.
    m.def("entered_key() -> Tensor[]", [] { return ForwardScope::instance().entered(); });
    m.def("enters_training() -> bool", [] { return ForwardScope::instance().trains(); });
    m.def("entered_groups() -> int[]", [] { return ForwardScope::instance().groups(); });
    const std::vector<at::Tag> tags = keyed_tags<at::Tag>();
    m.def("ids_of_rows(Tensor ids, Tensor owner) -> Tensor", tags);
    m.def("note_draws(bool on) -> ()", [](bool on) { ForwardScope::instance().note_draws(on); });
    m.def("forget_draws() -> ()", [] { ForwardScope::instance().forget_draws(); });
    m.def("unsampled_draws() -> str[]", [] { return ForwardScope::instance().unsampled_draws(); });
}

TORCH_LIBRARY_IMPL(hetseq, CPU, m) {
    m.impl("ids_of_rows", ids_of_rows);
}

TORCH_LIBRARY_IMPL(hetseq, CUDA, m) {
    m.impl("ids_of_rows", ids_of_rows);
}

TORCH_LIBRARY_IMPL(hetseq, Meta, m) {
    m.impl("ids_of_rows", ids_of_rows_meta);
}

// python/hetseq/randomness.py gives torch's random operators kernels at this dispatch key, and
// includes the key in the thread's set inside a forward only. So torch is untouched
// elsewhere, and code compiled inside is guarded by the set.
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

}  // namespace hetseq
