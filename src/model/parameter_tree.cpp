#include "parameter_tree.hpp"

#include <ATen/ops/empty.h>

namespace hetseq::detail {

at::Tensor register_by_path(torch::nn::Module& root,
                            const std::string& path,
                            at::IntArrayRef shape) {
    const std::size_t dot = path.find('.');
    if (dot == std::string::npos)
        return root.register_parameter(path, at::empty(shape));
    const std::string child = path.substr(0, dot);
    if (!root.named_children().contains(child))
        root.register_module(child, std::make_shared<torch::nn::Module>(child));
    return register_by_path(*root.named_children()[child], path.substr(dot + 1), shape);
}

}  // namespace hetseq::detail
