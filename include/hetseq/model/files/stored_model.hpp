#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/model/files/companion_file.hpp"
#include "hetseq/model/tensor_registry.hpp"

namespace hetseq {

/// The distribution from which a parameter's elements are drawn at the start.
struct InitialDistribution {
    enum class Kind { constant, uniform, normal, elements };
    Kind kind = Kind::constant;
    double value = 0;       // constant: the value; uniform: U(-value, value); normal: N(0, value^2)
    at::Tensor elements{};  // elements: themselves, in the parameter's shape
};

/// The side of a model that files know: which tensors they hold, by which names, what stands beside
/// them, and how parameters that no file gives are drawn.
class StoredModel : public TensorRegistry {
public:
    virtual ~StoredModel() = default;

    /// The tensors as files hold them: names, and views of the storage of parameters, trained or
    /// frozen, and of constant buffers, which may have any type. A tied tensor appears once. By
    /// default `named_parameters` and `named_buffers`.
    virtual std::vector<NamedTensor> stored_tensors() const;
    /// Those of them that are no views of parameters that were given up (`is_held`).
    std::vector<NamedTensor> held_tensors() const;
    /// Other names that files have for stored tensors, by that other name. A file may hold a tensor
    /// under both, or only under the other one; an empty stored name: the file's tensor is no
    /// parameter and is not read.
    virtual std::map<std::string, std::string> tensor_aliases() const { return {}; }
    /// True for a tensor, by the name that it has in a file, which serves one use of the network
    /// alone. The file that --init-model names may lack such tensors, which are then drawn, and may
    /// hold others than the model has, which are not read.
    virtual bool is_head(const std::string& /*tensor_name*/) const { return false; }
    /// True for a stored tensor that is drawn even where that file has one of its name, because it
    /// is of another head.
    virtual bool is_new_head(const std::string& /*tensor_name*/) const { return false; }
    /// True where the constructor has given the parameters their initial values. Otherwise they are
    /// drawn from `initial_distribution`.
    virtual bool initialises_itself() const { return false; }
    /// The distribution of the stored tensor of this name. The default is PyTorch's for linear and
    /// convolution layers: U(-1/sqrt(fan_in), 1/sqrt(fan_in)); vectors of normalisations 1, their
    /// biases 0.
    virtual InitialDistribution initial_distribution(const std::string& name) const;
    /// The text of a config.json that describes the network, to stand beside its parameters; empty
    /// where it needs none.
    virtual std::string config_json() const { return {}; }
    /// The files that stand beside its parameters: by default config.json, unless its text is
    /// empty.
    virtual std::vector<CompanionFile> companion_files() const;
};

}  // namespace hetseq
