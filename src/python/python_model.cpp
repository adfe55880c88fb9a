#include "python_model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/data/first_rows.hpp"

#include "forward_scope.hpp"
#include "named_tensors.hpp"
#include "python_calls.hpp"
#include "python_collator.hpp"
#include "python_data.hpp"
#include "python_scorer.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::json;

/// What Python says of a parameter, besides its tensor.
struct ParameterRule {
    bool decays = true;
    double learning_rate_factor = 1;
};

constexpr std::int64_t most_sampled =
    64;  // samples, of which the chain and the self-test take some

/// A micro-batch of the first samples of the training data.
MicroBatch first_samples(const PythonTask& task, const std::string& data) {
    if (data.empty())
        throw BadConfig("the task's model cannot be cut into stages without data",
                        "the first samples tell what its units read",
                        "name the training data: --data");
    if (names_dataset(task, data)) {
        const auto made = call_python("hetseq::task_first_batch", {data, most_sampled});
        MicroBatch batch;
        batch.tensors = tensor_dict(made.at(0).toListRef(), made.at(1).toTensorVector());
        return batch;
    }
    const LoadedShare::Rows rows = first_rows(data, task.schema, most_sampled);
    return make_python_collator(task)->collate(rows.fields, rows.sample_ids);
}

class PythonModel final : public Model {
public:
    /// `description`: an object with `parameters` and `buffers`, their names and treatment in the
    /// order of `tensors`, and `config`, the text of a config.json.
    PythonModel(const PythonTask& task,
                std::string data,
                const Json& description,
                const std::vector<at::Tensor>& tensors)
        : task_{task},
          data_{std::move(data)},
          is_chain_{description.at("is_chain")},
          config_{description.at("config")},
          recomputable_{description.at("recomputable")},
          has_groups_{description.at("has_groups")},
          evaluates_groups_{description.at("evaluates_groups")},
          takes_parameters_{description.at("takes_parameters")},
          has_own_buffers_{description.at("has_own_buffers")} {
        std::size_t i = 0;
        for (const Json& parameter : description.at("parameters")) {
            const auto name = parameter.at("name").get<std::string>();
            register_parameter(name, tensors.at(i), tensors.at(i).requires_grad());
            parameter_rules_[name] = {parameter.at("decays").get<bool>(),
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

    std::vector<std::string> loss_terms() const override { return task_.losses; }
    std::vector<MetricSchema> metrics() const override { return task_.metrics; }
    std::vector<std::string> scores() const override {
        std::vector<std::string> names;
        for (const ScoreSchema& score : task_.scores)
            names.push_back(score.name);
        return names;
    }
    bool score_is_share(const std::string& name) const override {
        return std::any_of(task_.scores.begin(), task_.scores.end(), [&](const ScoreSchema& score) {
            return score.name == name && score.is_share;
        });
    }
    bool scores_need_whole_model() const override { return true; }
    std::unique_ptr<CorpusScorer> corpus_scorer() override {
        return task_.scores.empty() ? nullptr : make_python_scorer(*this);
    }
    bool initialises_itself() const override { return true; }
    bool decays(const std::string& name) const override { return parameter_rules_.at(name).decays; }
    double learning_rate_factor(const std::string& name) const override {
        return parameter_rules_.at(name).learning_rate_factor;
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

    std::vector<NamedTensor> common_tensors() const override {
        std::vector<NamedTensor> tensors = stored_tensors();
        if (has_own_buffers_)
            std::erase_if(tensors, [buffers = named_buffers()](const NamedTensor& stored) {
                return buffers.contains(stored.name);
            });
        return tensors;
    }

    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        const bool is_training = context.mode == Mode::train;
        const TensorLists given = named_tensors(batch.tensors);
        if (is_training && !is_tested_)
            is_tested_ =
                call_python("hetseq::task_self_test", {given.names, given.tensors}).at(0).toBool();
        has_trained_ = has_trained_ || is_training;
        if (!has_trained_ && !has_learnt_) {
            has_learnt_ = true;
            call_python("hetseq::task_learn_draws", {given.names, given.tensors});
        }
        enter(batch, context);
        std::vector<at::Tensor> sums =
            call_python("hetseq::task_forward", {given.names, given.tensors, is_training})
                .at(0)
                .toTensorVector();
        leave(context);
        return result_of(sums, context);
    }

    // The whole module finds it, once. All that asks later has it from here.
    std::vector<ChainUnit> chain() const override {
        if (is_chain_ && chain_.empty())
            find_chain();
        return chain_;
    }

    bool is_chain() const override { return is_chain_; }

    Carried run_units(UnitRange units,
                      const Carried& carried,
                      const MicroBatch& batch,
                      const ForwardContext& context) override {
        if (units.empty())
            return Model::run_units(units, carried, batch, context);
        const TensorLists given = named_tensors(batch.tensors);
        enter(batch, context);
        std::vector<at::Tensor> made = call_python("hetseq::task_run_units",
                                                   {given.names,
                                                    given.tensors,
                                                    context.mode == Mode::train,
                                                    static_cast<std::int64_t>(units.begin),
                                                    static_cast<std::int64_t>(units.end),
                                                    carried.tensors})
                                           .at(0)
                                           .toTensorVector();
        leave(context);
        if (units.end < chain_.size())
            return {.tensors = std::move(made)};
        return {.result = result_of(made, context)};
    }

    bool has_groups(Mode mode) const override {
        return has_groups_ && (mode == Mode::train || evaluates_groups_);
    }
    bool is_exact() const override { return task_.is_exact; }
    at::Tensor update_sums() const override { return sums_; }
    bool takes_parameters() const override { return takes_parameters_; }
    void take_update_sums() override {
        if (sums_.defined())
            call_python("hetseq::task_take_sums", {});
    }

    std::int64_t recomputable_layers() const override {
        if (chain_.empty())
            return recomputable_;
        const UnitRange units = held_units();
        std::set<std::int64_t> modules;
        for (std::size_t unit = units.begin; unit < units.end; ++unit)
            modules.insert(recomputed_in_[unit].begin(), recomputed_in_[unit].end());
        return std::ssize(modules);
    }
    void recompute(std::int64_t layers) override {
        HETSEQ_ASSERT(layers >= 0 && layers <= recomputable_layers());
        const UnitRange units = chain_.empty() ? UnitRange{} : held_units();
        note_recomputed(layers);
        call_python(
            "hetseq::task_recompute",
            {layers, static_cast<std::int64_t>(units.begin), static_cast<std::int64_t>(units.end)});
    }

    bool predicts() const override { return task_.predicts; }

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
    static void enter(const MicroBatch& batch, const ForwardContext& context) {
        enter_forward({context.seed, context.update, batch.sample_ids, batch.groups},
                      context.mode == Mode::train);
    }
    static void leave(const ForwardContext& context) {
        if (context.mode != Mode::train)
            leave_step();
    }

    ForwardResult result_of(const std::vector<at::Tensor>& sums,
                            const ForwardContext& context) const {
        ForwardResult result;
        const auto metrics = sums.begin() + std::ssize(task_.losses);
        result.losses.assign(sums.begin(), metrics);
        if (context.mode != Mode::train)
            result.metrics.assign(metrics, sums.end());
        return result;
    }

    void find_chain() const {
        const TensorLists given = named_tensors(first_samples(task_, data_).tensors);
        const auto found = call_python("hetseq::task_find_chain", {given.names, given.tensors});
        for (const Json& unit : parse_json<Json>(found.at(0).toStringRef())) {
            recomputed_in_.push_back(unit.at("recomputed").get<std::vector<std::int64_t>>());
            chain_.push_back({.kind = unit.at("kind"),
                              .parameters = unit.at("parameters").get<std::vector<std::string>>(),
                              .recomputes = !recomputed_in_.back().empty()});
        }
        if (const std::string& said = found.at(1).toStringRef(); !said.empty())
            log::warn(said);
    }

    PythonTask task_;
    std::string data_;  // the training data, as --data names them
    bool is_chain_;
    mutable std::vector<ChainUnit> chain_;                          // empty until it was found
    mutable std::vector<std::vector<std::int64_t>> recomputed_in_;  // by unit: modules of the task
    std::string config_;
    std::int64_t recomputable_;
    bool has_groups_;
    bool evaluates_groups_;
    bool takes_parameters_;   // after an update
    bool has_own_buffers_;    // each rank, of which rank 0's count
    at::Tensor sums_;         // undefined: the module keeps no statistics of groups
    bool is_tested_ = false;  // that its results do not depend on the cut of a batch
    bool has_trained_ = false;
    bool has_learnt_ = false;  // where samples lie in what an evaluation draws
    std::map<std::string, ParameterRule> parameter_rules_;
    std::set<std::string> transient_buffers_;
};

}  // namespace

std::shared_ptr<Model> make_python_model(const PythonTask& task, const PartOptions& options) {
    const auto made = call_python("hetseq::task_model", {python_choices(options)});
    return std::make_shared<PythonModel>(task,
                                         options.data,
                                         parse_json<Json>(made.at(0).toStringRef()),
                                         made.at(1).toTensorVector());
}

}  // namespace hetseq
