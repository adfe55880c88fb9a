#pragma once

#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "hetseq/data/loading/micro_batch.hpp"

namespace hetseq {

/// A TensorDict as operators take it: names and tensors in the same order.
struct TensorLists {
    std::vector<std::string> names;
    std::vector<at::Tensor> tensors;
};

inline TensorLists named_tensors(const TensorDict& dict) {
    TensorLists result;
    for (const auto& [name, tensor] : dict) {
        result.names.push_back(name);
        result.tensors.push_back(tensor);
    }
    return result;
}

inline TensorDict tensor_dict(at::ArrayRef<c10::IValue> names,
                              const std::vector<at::Tensor>& tensors) {
    TensorDict dict;
    for (std::size_t i = 0; i < tensors.size(); ++i)
        dict[names[i].toStringRef()] = tensors[i];
    return dict;
}

}  // namespace hetseq
