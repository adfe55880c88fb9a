#include "hetseq/train/shares/update_cost.hpp"

#include <chrono>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;

struct SomeParameters {
    explicit SomeParameters(std::int64_t count) : flat{module(count), [](auto&) { return true; }} {}

    TensorRegistry& module(std::int64_t count) {
        owner.register_parameter("values", at::ones({count}));
        return owner;
    }

    TensorRegistry owner;
    FlatParameters flat;
};

// Takes 4 ms a step.
class Sleeper final : public Optimizer {
public:
    explicit Sleeper(std::int64_t& parameters) : parameters_{parameters} {}
    void step(FlatParameters& parameters, double) override {
        parameters_ = parameters.values().numel();
        std::this_thread::sleep_for(4ms);
    }
    std::map<std::string, at::Tensor> state() const override { return {}; }

private:
    std::int64_t& parameters_;
};

TEST(MeasureUpdateTest, IsTheTimeOfAStepAndMore) {
    const SomeParameters parameters{1000};
    std::int64_t stepped = 0;

    const double ms = measure_update(parameters.flat, [&](FlatParameters&) {
                          return std::make_unique<Sleeper>(stepped);
                      }).ms;

    EXPECT_GE(ms, 4);
    EXPECT_GE(stepped, 1000);
    EXPECT_TRUE((parameters.flat.values().narrow(0, 0, 1000) == 1).all().item<bool>());
}

TEST(MeasureUpdateTest, ManyParametersAreAPartOfThemMeasured) {
    const SomeParameters parameters{12 << 20};  // 48 MiB
    std::int64_t stepped = 0;

    const double ms = measure_update(parameters.flat, [&](FlatParameters&) {
                          return std::make_unique<Sleeper>(stepped);
                      }).ms;

    EXPECT_EQ(stepped, 4 << 20);
    EXPECT_GE(ms, 3 * 4);
}

TEST(MeasureUpdateTest, BuiltInOptimizersTakeTime) {
    const SomeParameters parameters{100'000};

    const UpdateCost cost =
        measure_update(parameters.flat, [](FlatParameters& own) { return make_adadelta(own, {}); });

    EXPECT_GT(cost.ms, 0);
    EXPECT_GT(cost.ms_per_cpu_ms, 0);
}

}  // namespace
}  // namespace hetseq
