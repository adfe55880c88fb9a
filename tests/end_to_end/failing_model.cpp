// hetseq with a model that fails where FAILING_MODEL says: "forward:UPDATE" or "backward:UPDATE"
// (counted from 1) throws there, "kill:UPDATE" ends the process as SIGKILL does, "nan:UPDATE" makes
// gradients that are not numbers, from that update on. Without it the model is good.
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/relu.h>

#include "hetseq/task/parts.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"

#include "model/linear_layer.hpp"

namespace {

[[noreturn]] void fail() {
    throw std::runtime_error("the model failed on purpose");
}

class Failure {
public:
    Failure() {
        const char* text = std::getenv("FAILING_MODEL");
        if (text == nullptr)
            return;
        const std::string whole = text;
        const auto colon = whole.find(':');
        place_ = whole.substr(0, colon);
        update_ = std::stoll(whole.substr(colon + 1)) - 1;
    }
    bool is_due(const std::string& place, const hetseq::ForwardContext& context) const {
        return is_due_from(place, context) && context.update == update_;
    }
    bool is_due_from(const std::string& place, const hetseq::ForwardContext& context) const {
        return context.mode == hetseq::Mode::train && place == place_ && context.update >= update_;
    }

private:
    std::string place_;
    std::int64_t update_ = 0;
};

/// Two linear layers from pixels to classes. Input as the batching "images" makes it.
class FailingModel final : public hetseq::Model {
public:
    FailingModel() {
        hidden_ =
            register_module("hidden", std::make_shared<hetseq::test::LinearLayer>(28 * 28, 64));
        output_ = register_module("output", std::make_shared<hetseq::test::LinearLayer>(64, 10));
    }

    std::vector<std::string> loss_terms() const override { return {"nll"}; }
    std::vector<hetseq::MetricSchema> metrics() const override { return {{"accuracy", 0}}; }

    hetseq::ForwardResult forward(const hetseq::MicroBatch& batch,
                                  const hetseq::ForwardContext& context) override {
        if (failure_.is_due("kill", context))
            std::raise(SIGKILL);
        if (failure_.is_due("forward", context))
            fail();
        const at::Tensor labels = batch.tensors.at("labels");
        const at::Tensor images = batch.tensors.at("images").flatten(1).to(hidden_->weight.dtype());
        const at::Tensor hidden = at::relu(hidden_->forward(images));  // (n, 64)
        // When the output's gradients are ready, and their bucket has left.
        if (failure_.is_due("backward", context))
            hidden.register_hook([](const at::Tensor&) -> at::Tensor { fail(); });
        if (failure_.is_due_from("nan", context))
            hidden.register_hook([](const at::Tensor& gradient) { return gradient * NAN; });
        const at::Tensor logits = output_->forward(hidden);  // (n, 10)
        hetseq::ForwardResult result;
        result.losses = {at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum)};
        if (context.mode == hetseq::Mode::evaluate)
            result.metrics = {(logits.argmax(1) == labels).sum()};
        return result;
    }

private:
    Failure failure_;
    std::shared_ptr<hetseq::test::LinearLayer> hidden_, output_;
};

}  // namespace

int main(int argc, char** argv) {
    hetseq::keep_freed_memory();
    hetseq::Parts parts = hetseq::builtin_parts();
    parts.models.add("failing",
                     [](const hetseq::PartOptions&) { return std::make_shared<FailingModel>(); });
    return hetseq::run_program(argc, argv, parts);
}
