#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hetseq/model/arithmetic.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

/// While it lives, this thread computes in `arithmetic`: under autocast in 16 bits, and as it did
/// before otherwise. Casts of parameters are kept until its end, or that of `KeptCasts`.
class Autocast {
public:
    /// An arithmetic in 16 bits, and what was converted in it.
    struct Narrow;
    /// Null: there is no autocast.
    using State = std::shared_ptr<Narrow>;

    explicit Autocast(const Arithmetic& arithmetic);
    /// As another one, which may be at its end: its converted parameters serve again.
    explicit Autocast(State state);
    ~Autocast();
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

    /// The state of this thread.
    static const State& state() noexcept { return current; }

private:
    struct Before {
        at::DeviceType device;
        bool was_enabled;
        at::ScalarType type;
        bool kept_casts;
        State state;
    };

    std::optional<Before> before_;  // none: there is no autocast

    friend class KeptCasts;
    friend at::Tensor narrow_parameter(const at::Tensor& parameter);
    static thread_local State current;
};

/// While it lives, no parameter changes. What `narrow_parameter` converted under an `Autocast` of
/// this thread with `arithmetic` serves the later ones too: all micro-batches of an update.
class KeptCasts {
public:
    explicit KeptCasts(const Arithmetic& arithmetic);
    ~KeptCasts();
    KeptCasts(const KeptCasts&) = delete;
    KeptCasts& operator=(const KeptCasts&) = delete;

    /// Those of this thread: gives their memory back, but for what graphs use.
    static void drop();

private:
    friend class Autocast;
    Autocast::State before_;
    static thread_local Autocast::State kept;
};

/// The type of products of `x`: 16 bits where at::linear would cast it under autocast.
at::ScalarType product_type(const at::Tensor& x);
/// `x` in the type of products, as at::linear casts it under autocast; itself without.
at::Tensor narrowed(const at::Tensor& x);
/// True where products of tensors on such a device are computed in 16 bits.
bool has_narrow_products(at::DeviceType device);
/// A parameter in the type of products, outside of the graph. While an `Autocast` or `KeptCasts`
/// lives, all parameters that share memory of a GPU are converted once, by one kernel.
at::Tensor narrow_parameter(const at::Tensor& parameter);

/// `x`, in fp32 where it has 16 bits: what a loss, a sum or a file is made of.
at::Tensor at_least_fp32(const at::Tensor& x);

/// `model.forward` in the model's arithmetic. Losses are fp32 at least.
ForwardResult run_forward(Model& model, const MicroBatch& batch, const ForwardContext& context);
/// `model.run_units` likewise. What it hands on is never a tensor of `carried` itself.
Carried run_chain_units(Model& model,
                        UnitRange units,
                        const Carried& carried,
                        const MicroBatch& batch,
                        const ForwardContext& context);
/// `model.predict` likewise: files hold no 16 bits.
std::vector<Prediction> run_predict(Model& model, const MicroBatch& batch);

}  // namespace hetseq
