#include <torch/nn/modules/batchnorm.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

namespace {

bool mixes_samples(const torch::nn::Module& module) {
    return module.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
           module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
           module.as<torch::nn::BatchNorm3dImpl>() != nullptr ||
           module.named_buffers(/*recurse=*/false).contains("running_mean");
}

[[noreturn]] void refuse(const std::string& name) {
    throw BadConfig("the model's module '" + name + "' keeps batch statistics",
                    "its output for one sample depends on the others of its micro-batch, so no "
                    "weighting makes unlike shares equal to one device",
                    "use a normalisation within the sample: LayerNorm or GroupNorm");
}

}  // namespace

void check_no_batch_statistics(const torch::nn::Module& model) {
    if (mixes_samples(model))
        refuse(model.name());
    for (const auto& item : model.named_modules({}, /*include_self=*/false))
        if (mixes_samples(*item.value()))
            refuse(item.key());
}

}  // namespace hetseq
