#include "python_optimizer.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/List.h>

#include "hetseq/optim/flat_parameters.hpp"

#include "named_tensors.hpp"
#include "python_calls.hpp"

namespace hetseq {

namespace {

// What asks for another learning rate than --lr; empty: nothing does.
std::string schedule_of(const PartOptions& options) {
    const ScheduleOptions& schedule = options.schedule;
    if (schedule.name != ScheduleOptions{}.name)
        return "--lr-scheduler " + schedule.name;
    return schedule.warmup_updates > 0 ? "--warmup-updates" : "";
}

class PythonOptimizer final : public Optimizer {
public:
    PythonOptimizer(FlatParameters& parameters, const PartOptions& options) {
        std::vector<std::string> names;
        std::vector<at::Tensor> tensors;
        std::vector<double> factors;
        c10::List<bool> decays;
        for (const FlatParameters::Parameter& parameter : parameters.parameters()) {
            names.push_back(parameter.name);
            tensors.push_back(parameter.tensor);
            factors.push_back(parameter.learning_rate_factor);
            decays.push_back(parameter.decays);
        }
        const auto made = call_python(
            "hetseq::task_optimizer",
            {names, tensors, factors, decays, options.schedule.lr, schedule_of(options)});
        handle_ = made.at(0).toInt();
        has_scheduler_ = made.at(3).toBool();
        state_ = tensor_dict(made.at(1).toListRef(), made.at(2).toTensorVector());
    }
    ~PythonOptimizer() override {
        try {
            call_python("hetseq::task_optimizer_end", {handle_});
        } catch (const std::exception&) {
            // Python keeps it until the run ends
        }
    }
    PythonOptimizer(const PythonOptimizer&) = delete;
    PythonOptimizer& operator=(const PythonOptimizer&) = delete;

    void step(FlatParameters&, double lr) override {
        call_python("hetseq::task_optimizer_step", {handle_, lr});
    }
    double rate(double scheduled) const override {
        return has_scheduler_
                   ? call_python("hetseq::task_optimizer_rate", {handle_}).at(0).toDouble()
                   : scheduled;
    }
    std::map<std::string, at::Tensor> state() const override { return state_; }
    void restored() override { call_python("hetseq::task_optimizer_restored", {handle_}); }

private:
    std::int64_t handle_ = 0;
    bool has_scheduler_ = false;  // which gives the learning rate
    std::map<std::string, at::Tensor> state_;
};

}  // namespace

std::unique_ptr<Optimizer> make_python_optimizer(FlatParameters& parameters,
                                                 const PartOptions& options) {
    return std::make_unique<PythonOptimizer>(parameters, options);
}

}  // namespace hetseq
