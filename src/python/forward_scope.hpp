#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/loading/micro_batch.hpp"

// The operators that make the randomness of a user's module a function of sample ids
// (keyed_dropout.cpp, keyed_noise.cpp). Each is opaque to torch.compile, and a function of its
// arguments alone, so that backward and a compiled graph draw again by the key of the forward,
// whatever forward the process has entered since:
//   stream  int64 scalar on the CPU that stands for (module path, number of the call): a tensor
//           rather than a number, so that one compiled block can serve many modules
//   key     int64 (2) on the CPU: the run's seed and the update
//   ids     int64 (n): the samples of dimension 0
//   draw    the number of the draw within the call
//   what    the function of torch that draws, for messages

namespace hetseq {

/// What all random numbers of one forward of a user's module are a function of, beside the module's
/// path, the number of its call and the number of the draw within the call.
struct RandomnessKey {
    std::uint64_t seed = 1;   // of the run
    std::int64_t update = 0;  // in [0, 2^32)
    at::Tensor sample_ids;    // (n) int64 in [0, 2^48), on the device of the forward
    BatchGroups groups{};     // of the samples
};

/// The forward that begins now draws by `key`. Its backward does so too, and what activation
/// checkpointing computes again in it, after whatever other forward was entered since. One forward
/// at a time in a process. `training` = false: it evaluates. Then it draws by a seed of its own and
/// the same numbers in each update, so that two validations of the same parameters agree.
void enter_forward(const RandomnessKey& key, bool training);

/// No forward may draw by a key until the next `enter_forward`.
void leave_step() noexcept;

/// Where a draw stands in a forward.
struct DrawPlace {
    std::int64_t stream = 0;  // of the module and the number of its call
    std::int64_t draw = 0;    // within the call
    friend auto operator<=>(const DrawPlace&, const DrawPlace&) = default;
};

/// Where the samples lie in a tensor that is drawn: in dimension `dim`, `rows` of it each, one
/// after the other.
struct SampleDim {
    std::int64_t dim = 0;
    std::int64_t rows = 1;  // 1 where dim > 0
};

/// The state of the process: which forward is entered, and what is known of its draws.
class ForwardScope {
public:
    static ForwardScope& instance();

    void enter(const RandomnessKey& key, bool training);
    void leave();
    /// The key, int64 (2) on the CPU, and the sample ids of the forward that is entered, or
    /// nothing.
    std::vector<at::Tensor> entered() const;
    bool trains() const;  // rather than evaluates
    /// The groups of its samples: the number of the first, the total of the update's batch, and the
    /// groups' sizes. Nothing where it has none.
    std::vector<std::int64_t> groups() const;

    /// `has_heads`: several rows of a sample are its heads, whatever their number.
    void name_stream(std::int64_t stream, std::string path, bool has_heads);
    std::string name_of(std::int64_t stream) const;

    /// `ids` on the CPU: copied once for all draws by them.
    at::Tensor on_host(const at::Tensor& ids);

    /// Whether a draw of `shape` is one number for all samples of the update, and not one for each:
    /// of no dimension, or of one element where there are, or once were, several samples.
    bool is_for_all(at::IntArrayRef shape, std::int64_t samples, const DrawPlace& place);

    /// Where the samples lie in a draw of `shape`: in dimension 0 unless the self-test saw them in
    /// another. Throws BadConfig naming the module and `what`, the function, if they share it not
    /// evenly, or if nothing told that they do: a table that all share may have as many rows by
    /// chance, and so may a dimension behind the first.
    SampleDim samples_in(at::IntArrayRef shape,
                         std::int64_t samples,
                         std::string_view what,
                         const DrawPlace& place);

    /// Begins to note the shape of each draw, by the number of samples. Afterwards several rows of
    /// a sample are believed where those grew with the number of samples, and a dimension behind
    /// the first where it always was that number.
    void note_draws(bool on);
    /// Another module is trained from now on.
    void forget_draws();
    /// The draws that have as many rows for few samples as for many: sentences without an end.
    std::vector<std::string> unsampled_draws() const;

private:
    struct Noted {
        std::string what;
        std::map<std::int64_t, std::vector<std::int64_t>> shapes;  // by the number of samples
    };

    mutable std::mutex mutex_;
    at::Tensor key_, ids_;
    BatchGroups groups_;
    bool trains_ = false;
    at::Tensor last_ids_, ids_on_host_;
    std::map<std::int64_t, std::string> names_;
    std::set<DrawPlace> for_all_;
    std::int64_t dim_of_samples(at::IntArrayRef shape,
                                std::int64_t samples,
                                const DrawPlace& place) const;
    bool believes_rows(std::int64_t rows, const DrawPlace& place) const;

    bool notes_ = false;
    bool has_noted_ = false;
    std::map<DrawPlace, Noted> noted_;
    std::set<std::int64_t> with_heads_;  // streams
};

/// The Philox seed of a draw by `key`, int64 (2) on the CPU: each has its own.
struct DrawKey {
    std::uint64_t seed = 0;
    std::int64_t update = 0;
};
DrawKey draw_key(const at::Tensor& key, const DrawPlace& place);

}  // namespace hetseq
