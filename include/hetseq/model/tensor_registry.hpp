#pragma once

#include <cstddef>
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
    NamedTensors() = default;
    explicit NamedTensors(std::vector<NamedTensor> tensors) : tensors_{std::move(tensors)} {}

    auto begin() const noexcept { return tensors_.begin(); }
    auto end() const noexcept { return tensors_.end(); }
    std::size_t size() const noexcept { return tensors_.size(); }

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
    /// first, then its children as they were registered. So torch::nn::Module orders them.
    NamedTensors named_parameters() const { return in_order(true); }
    NamedTensors named_buffers() const { return in_order(false); }
    /// Null where there is none of this name.
    const at::Tensor* find_parameter(const std::string& name) const noexcept;
    std::vector<at::Tensor> parameters() const;
    std::vector<at::Tensor> buffers() const;

    /// Both return `tensor`. A name is given once.
    at::Tensor register_parameter(const std::string& name,
                                  at::Tensor tensor,
                                  bool requires_grad = true);
    at::Tensor register_buffer(const std::string& name, at::Tensor tensor);

    /// All parameters and buffers of a module of torch, as NAME.THEIRS. `module` points to it, as
    /// torch::nn::Linear or std::shared_ptr<torch::nn::Module> do; it is returned. What is
    /// registered in it later is not seen. Throws BadConfig for a module that mixes the samples of
    /// a micro-batch (batch normalisation).
    template <class Pointer>
    Pointer register_module(const std::string& name, Pointer module) {
        for (const auto& part : module->named_modules(name))
            refuse_batch_statistics(
                part.key(),
                part.value()->name(),
                part.value()->named_buffers(/*recurse=*/false).contains("running_mean"));
        for (const auto& item : module->named_parameters())
            register_parameter(name + "." + item.key(), item.value(), item.value().requires_grad());
        for (const auto& item : module->named_buffers())
            register_buffer(name + "." + item.key(), item.value());
        return module;
    }

private:
    struct Entry {
        NamedTensor named;
        bool is_parameter = false;
    };

    void add(Entry entry);
    NamedTensors in_order(bool are_parameters) const;
    static void refuse_batch_statistics(const std::string& name,
                                        const std::string& type,
                                        bool keeps_means);

    std::vector<Entry> entries_;  // as they were registered
};

}  // namespace hetseq
