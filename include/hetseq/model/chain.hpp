#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/model/forward_result.hpp"

namespace hetseq {

/// Units [begin, end) of a chain.
struct UnitRange {
    std::size_t begin = 0;
    std::size_t end = 0;

    std::size_t size() const noexcept { return end - begin; }
    bool empty() const noexcept { return begin == end; }
    bool contains(std::size_t unit) const noexcept { return begin <= unit && unit < end; }
    bool operator==(const UnitRange&) const = default;
};

/// A part of a model that one stage of a pipeline runs whole.
struct ChainUnit {
    std::string kind;                     // units of one kind cost the same: "encoder layer"
    std::vector<std::string> parameters;  // all that it reads (`named_parameters`); a tied one is
                                          // in several units
    bool recomputes = false;              // it is one of the layers of `Model::recompute`
};

/// The units that read a parameter, ascending, by its name. A tied one has several.
std::map<std::string, std::vector<std::size_t>> readers_by_parameter(
    const std::vector<ChainUnit>& chain);

/// What goes from unit to unit beside the batch.
struct Carried {
    std::vector<at::Tensor> tensors{};  // of hidden states; none in front of the first unit and
                                        // behind the last
    ForwardResult result{};             // of the last unit
};

}  // namespace hetseq
