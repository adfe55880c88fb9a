#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// A tensor under the name that it has in a file.
struct NamedTensor {
    std::string name;
    at::Tensor tensor;
};

/// Tensors and their names, in some order.
class NamedTensors {
public:
    explicit NamedTensors(std::vector<NamedTensor> tensors) : tensors_{std::move(tensors)} {}

    auto begin() const noexcept { return tensors_.begin(); }
    auto end() const noexcept { return tensors_.end(); }

    const at::Tensor* find(const std::string& name) const noexcept;  // null where there is none
    bool contains(const std::string& name) const noexcept { return find(name) != nullptr; }
    const at::Tensor& operator[](const std::string& name) const;  // which must be there

private:
    std::vector<NamedTensor> tensors_;
};

/// The parameters and buffers of a network, under dotted names ("bert.pooler.dense.weight"). A
/// tensor may have several names.
class TensorRegistry {
public:
    /// Each in the order of a tree whose inner nodes are the names' parts: a node's own tensors
    /// first, then its children as they were registered. So torch::nn::Module orders parameters.
    /// Throws BadConfig where a name was given twice.
    NamedTensors named_parameters() const { return in_order(true); }
    NamedTensors named_buffers() const { return in_order(false); }
    /// Undefined where there is none of this name.
    at::Tensor find_parameter(const std::string& name) const;
    std::vector<at::Tensor> parameters() const;
    std::vector<at::Tensor> buffers() const;
    /// False for a parameter that was given up (`keep_only`): it has a shape, a type and a device,
    /// but no values.
    bool is_held(const std::string& parameter_name) const {
        return given_up_.count(parameter_name) == 0;
    }
    /// `keep_only` was called, whatever it kept.
    bool is_part() const noexcept { return is_part_; }

    /// Both return `tensor`.
    at::Tensor register_parameter(const std::string& name,
                                  at::Tensor tensor,
                                  bool requires_grad = true);
    at::Tensor register_buffer(const std::string& name, at::Tensor tensor);

    /// All parameters and buffers of a module of torch, or of another registry, as NAME.THEIRS,
    /// also those that it gets later. `module` points to it, as torch::nn::Linear or
    /// std::shared_ptr do; it is returned.
    template <class Pointer>
    Pointer register_module(const std::string& name, Pointer module) {
        listings_.push_back([name, module](Contents& contents) {
            if constexpr (requires { module->named_modules(name); }) {
                const auto list = [&](const auto& items, bool are_parameters) {
                    for (const auto& item : items)
                        contents.entries.push_back(
                            {{name + "." + item.key(), item.value()}, are_parameters});
                };
                for (const auto& part : module->named_modules(name))
                    contents.modules.push_back({part.key(), part.value()->name()});
                list(module->named_parameters(), true);
                list(module->named_buffers(), false);
            } else {
                contents.append(name + ".", module->contents());
            }
        });
        return module;
    }

    /// Throws BadConfig where a module of torch mixes the samples of a micro-batch, or a buffer's
    /// name tells so (batch normalisation).
    void check_no_batch_statistics() const;

protected:
    /// Gives up the memory of all parameters but those of these names and their tied ones, which
    /// get theirs back, without values, where they had lost it.
    void keep_only(const std::set<std::string>& names);

private:
    struct Entry {
        NamedTensor named;
        bool is_parameter = false;
    };
    struct ModuleType {
        std::string name, type;
    };
    struct Contents {
        std::vector<Entry> entries;  // as they were registered
        std::vector<ModuleType> modules;

        void append(const std::string& prefix, Contents other);
    };

    void add(Entry entry);
    Contents contents() const;
    NamedTensors in_order(bool are_parameters) const;

    std::vector<std::function<void(Contents&)>> listings_;
    std::set<std::string> given_up_;  // names
    bool is_part_ = false;
};

}  // namespace hetseq
