#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "hetseq/optim/optimizer_options.hpp"

namespace hetseq {

class FlatParameters;

/// Updates flat parameters from their summed gradients. All memory is taken by the constructor;
/// `step` takes none. Weight decay applies to segments that decay, and the learning rate is
/// multiplied by the segment's factor.
class Optimizer {
public:
    virtual ~Optimizer() = default;
    /// `parameters` are those of the constructor.
    virtual void step(FlatParameters& parameters, double lr) = 0;
    /// The learning rate that the next step takes where the run's schedule says `scheduled`: that
    /// one, unless the optimizer brings a schedule of its own.
    virtual double rate(double scheduled) const { return scheduled; }
    /// From now on a step changes no parameter and no state on the device where `closed`, a scalar
    /// in fp32 on it, is 1 and not 0 when the device comes to it. Such a step is then taken back.
    /// Undefined: no gate any more. Returns false, and changes nothing, where the optimizer cannot
    /// do so; its steps on a GPU then wait for the host.
    virtual bool use_gate(const at::Tensor& /*closed*/) { return false; }
    /// The last step found its gate closed: it does not count.
    virtual void take_back() {}
    /// True: it holds the state of `FlatParameters::held` alone, and steps no other elements.
    virtual bool follows_shards() const { return false; }
    /// How many tensors of the size of `FlatParameters::state_zeros` it holds.
    virtual std::int64_t state_tensors() const;
    /// Where the state is cut over ranks: `sum` sums a tensor (fp64, on the parameters' device)
    /// over them. It is called in a step, on all ranks alike, for what a rule needs of whole
    /// parameters.
    virtual void use_sum(std::function<void(const at::Tensor&)> /*sum*/) {}
    /// A moving average of the parameters that the state has, a tensor like
    /// `FlatParameters::state_zeros`, under the name `average_name`; undefined: it has none.
    virtual at::Tensor average() const { return {}; }
    static constexpr const char* average_name = "average";
    /// The parameters have other values than when the optimizer was made, and no step led there.
    virtual void begin(const FlatParameters& /*parameters*/) {}
    /// State by name: for checkpoints. A name without '/' is of a tensor of what is held, in
    /// `FlatParameters::state_zeros`'s layout: flat like the parameters where all is ("exp_avg");
    /// or of a scalar on the CPU ("step", int64, the count of steps), the same on all ranks. A
    /// name with '/' is of any tensor of its own ("exp_avg/encoder.weight"), on the CPU or the
    /// device. The tensors are the optimizer's own, the same ones in all calls: copying into them
    /// restores it, followed by `restored`.
    virtual std::map<std::string, at::Tensor> state() const = 0;
    /// Called after other values were copied into the tensors of `state`, for an optimizer that
    /// derives something from them.
    virtual void restored() {}
};

/// `options` are in the ranges that the command line's options have. `parameters` must outlive the
/// optimizer. As torch::optim has them, without amsgrad and Nesterov momentum:
/// Adam (Kingma & Ba 2015), AdamW (Loshchilov & Hutter 2019), SGD (dampening 0),
/// Adadelta (Zeiler 2012).
std::unique_ptr<Optimizer> make_adam(FlatParameters& parameters, const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adamw(FlatParameters& parameters, const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_sgd(FlatParameters& parameters, const OptimizerOptions& options);
std::unique_ptr<Optimizer> make_adadelta(FlatParameters& parameters,
                                         const OptimizerOptions& options);
/// LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2, phi(z) = z): a parameter w whose bias-
/// corrected direction of Adam is a steps by -lr r u, where u = a + weight_decay w, and r = |w| /
/// |u| is its trust ratio, 1 where either norm is 0. As in NVIDIA's FusedLAMB without use_nvlamb,
/// only parameters with weight decay have a trust ratio; the others step as Adam's, and so do all
/// where the weight decay is 0. Takes memory for u besides the state.
std::unique_ptr<Optimizer> make_lamb(FlatParameters& parameters, const OptimizerOptions& options);

}  // namespace hetseq
