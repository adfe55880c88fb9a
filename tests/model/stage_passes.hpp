#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include "hetseq/model/autocast.hpp"
#include "hetseq/model/model.hpp"

/// Passes through a whole model, and through stages of one in this process.
namespace hetseq::test {

inline constexpr ForwardContext training{.seed = 5, .update = 2};

struct Computed {
    std::vector<at::Tensor> losses;               // of each micro-batch
    std::map<std::string, at::Tensor> gradients;  // by parameter
};

inline at::Tensor summed(const ForwardResult& result) {
    at::Tensor sum = result.losses.front();
    for (std::size_t i = 1; i < result.losses.size(); ++i)
        sum = sum + result.losses[i];
    return sum;
}

/// Adds: a tied parameter is in several stages.
inline void add_gradients(const Model& model, std::map<std::string, at::Tensor>& sums) {
    for (const auto& [name, parameter] : model.named_parameters()) {
        if (!parameter.grad().defined())
            continue;
        at::Tensor& sum = sums[name];
        sum = sum.defined() ? sum + parameter.grad() : parameter.grad().clone();
    }
}

inline Computed computed_whole(Model& model, const std::vector<MicroBatch>& batches) {
    Computed computed;
    for (const MicroBatch& batch : batches) {
        const at::Tensor loss = summed(run_forward(model, batch, training));
        loss.backward();
        computed.losses.push_back(loss.detach());
    }
    add_gradients(model, computed.gradients);
    return computed;
}

/// One micro-batch on its way through the stages.
struct Journey {
    std::vector<std::vector<at::Tensor>> given, made;  // by stage
    at::Tensor loss;
};

inline Journey forwarded(const std::vector<std::shared_ptr<Model>>& stages,
                         const MicroBatch& batch) {
    Journey journey;
    Carried carried;
    for (const auto& stage : stages) {
        journey.given.push_back(carried.tensors);
        carried = run_chain_units(*stage, stage->held_units(), carried, batch, training);
        journey.made.push_back(carried.tensors);
        for (at::Tensor& tensor : carried.tensors)
            tensor = tensor.detach().clone().set_requires_grad(tensor.requires_grad());
    }
    journey.loss = summed(carried.result);
    return journey;
}

inline void backwarded(const Journey& journey) {
    journey.loss.backward();
    for (std::size_t stage = journey.made.size() - 1; stage-- > 0;) {
        std::vector<at::Tensor> outputs, gradients;
        for (std::size_t i = 0; i < journey.made[stage].size(); ++i)
            if (const at::Tensor& gradient = journey.given[stage + 1][i].grad();
                gradient.defined()) {
                outputs.push_back(journey.made[stage][i]);
                gradients.push_back(gradient);
            }
        torch::autograd::backward(outputs, gradients);
    }
}

/// All micro-batches are in flight before the first goes back.
inline Computed computed_in_stages(const std::vector<std::shared_ptr<Model>>& stages,
                                   const std::vector<MicroBatch>& batches) {
    Computed computed;
    std::vector<Journey> journeys;
    for (const MicroBatch& batch : batches)
        journeys.push_back(forwarded(stages, batch));
    for (const Journey& journey : journeys) {
        backwarded(journey);
        computed.losses.push_back(journey.loss.detach());
    }
    for (std::size_t stage = stages.size(); stage-- > 0;)
        add_gradients(*stages[stage], computed.gradients);
    return computed;
}

}  // namespace hetseq::test
