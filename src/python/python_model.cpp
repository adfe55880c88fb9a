#include "python_model.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"

#include "forward_scope.hpp"
#include "named_tensors.hpp"
#include "python_calls.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::json;

/// What Python says of a parameter, besides its tensor.
struct Treatment {
    bool decays = true;
    double learning_rate_factor = 1;
};

std::string choices_json(const PartOptions& options) {
    Json json{{"model_config", options.model_config},
              {"init_model", options.init_model},
              {"data", options.data},
              {"seed", options.seed},
              {"options", options.own}};
    json["dropout"] = options.dropout ? Json(*options.dropout) : Json(nullptr);
    json["attention_dropout"] =
        options.attention_dropout ? Json(*options.attention_dropout) : Json(nullptr);
    return json.dump();
}

class PythonModel final : public Model {
public:
    /// `description`: an object with `parameters` and `buffers`, their names and treatment in the
    /// order of `tensors`, and `config`, the text of a config.json.
    PythonModel(const PythonTask& task,
                const Json& description,
                const std::vector<at::Tensor>& tensors)
        : losses_{task.losses},
          metrics_{task.metrics},
          config_{description.at("config")},
          predicts_{task.predicts},
          is_exact_{task.is_exact},
          recomputable_{description.at("recomputable")},
          has_groups_{description.at("has_groups")},
          evaluates_groups_{description.at("evaluates_groups")} {
        std::size_t i = 0;
        for (const Json& parameter : description.at("parameters")) {
            const auto name = parameter.at("name").get<std::string>();
            register_parameter(name, tensors.at(i), tensors.at(i).requires_grad());
            treatments_[name] = {parameter.at("decays").get<bool>(),
                                 parameter.at("lr_factor").get<double>()};
            ++i;
        }
        for (const Json& buffer : description.at("buffers")) {
            const auto name = buffer.at("name").get<std::string>();
            register_buffer(name, tensors.at(i));
            if (!buffer.at("is_stored").get<bool>())
                transient_buffers_.insert(name);
            if (name == description.at("sums").get<std::string>())
                sums_ = tensors.at(i);
            ++i;
        }
    }

    ~PythonModel() override { leave_step(); }

    std::vector<std::string> loss_terms() const override { return losses_; }
    std::vector<MetricSchema> metrics() const override { return metrics_; }
    bool initialises_itself() const override { return true; }
    bool decays(const std::string& name) const override { return treatments_.at(name).decays; }
    double learning_rate_factor(const std::string& name) const override {
        return treatments_.at(name).learning_rate_factor;
    }
    std::string config_json() const override { return config_; }

    // Without the buffers that the module leaves out of its state_dict.
    std::vector<NamedTensor> stored_tensors() const override {
        std::vector<NamedTensor> tensors = Model::stored_tensors();
        std::erase_if(tensors, [&](const NamedTensor& stored) {
            return transient_buffers_.count(stored.name) > 0;
        });
        return tensors;
    }

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        const bool is_training = context.mode == Mode::train;
        const TensorLists given = named_tensors(batch.tensors);
        if (is_training && !is_tested_)
            is_tested_ =
                call_python("hetseq::task_self_test", {given.names, given.tensors}).at(0).toBool();
        enter_forward({context.seed, context.update, batch.sample_ids, batch.groups}, is_training);
        std::vector<at::Tensor> sums =
            call_python("hetseq::task_forward", {given.names, given.tensors, is_training})
                .at(0)
                .toTensorVector();
        if (!is_training)
            leave_step();
        ForwardResult result;
        const auto metrics = sums.begin() + static_cast<std::ptrdiff_t>(losses_.size());
        result.losses.assign(sums.begin(), metrics);
        if (!is_training)
            result.metrics.assign(metrics, sums.end());
        return result;
    }

    bool has_groups(Mode mode) const override {
        return has_groups_ && (mode == Mode::train || evaluates_groups_);
    }
    bool is_exact() const override { return is_exact_; }
    at::Tensor update_sums() const override { return sums_; }
    void take_update_sums() override {
        if (sums_.defined())
            call_python("hetseq::task_take_sums", {});
    }

    std::int64_t recomputable_layers() const override { return recomputable_; }
    void recompute(std::int64_t layers) override {
        Model::recompute(layers);
        call_python("hetseq::task_recompute", {layers});
    }

    bool predicts() const override { return predicts_; }

    std::vector<Prediction> predict(const MicroBatch& batch) override {
        const TensorLists given = named_tensors(batch.tensors);
        const auto made = call_python("hetseq::task_predict", {given.names, given.tensors});
        const auto names = made.at(0).toListRef();
        const auto values = made.at(1).toTensorVector();
        const auto lengths = made.at(2).toTensorVector();
        std::vector<Prediction> predictions;
        for (std::size_t i = 0; i < values.size(); ++i)
            predictions.push_back({names[i].toStringRef(),
                                   values[i],
                                   lengths[i].numel() > 0 ? lengths[i] : at::Tensor{}});
        return predictions;
    }

private:
    std::vector<std::string> losses_;
    std::vector<MetricSchema> metrics_;
    std::string config_;
    bool predicts_;
    bool is_exact_;
    std::int64_t recomputable_;
    bool has_groups_;
    bool evaluates_groups_;
    at::Tensor sums_;         // undefined: the module keeps no statistics of groups
    bool is_tested_ = false;  // that its results do not depend on the cut of a batch
    std::map<std::string, Treatment> treatments_;
    std::set<std::string> transient_buffers_;
};

}  // namespace

std::shared_ptr<Model> make_python_model(const PythonTask& task, const PartOptions& options) {
    const auto made = call_python("hetseq::task_model", {choices_json(options)});
    return std::make_shared<PythonModel>(
        task, Json::parse(made.at(0).toStringRef()), made.at(1).toTensorVector());
}

}  // namespace hetseq
