#include <ATen/core/Tensor.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/task/parts.hpp"

#include "optim/toy_module.hpp"

namespace hetseq {
namespace {

using Make = std::function<std::unique_ptr<Optimizer>(FlatParameters&)>;

/// The toy's parameters after two steps on the same gradients.
at::Tensor two_steps(const Make& make) {
    test::ToyModule module;
    FlatParameters parameters(module, test::matrices_decay);
    const auto optimizer = make(parameters);
    const at::Tensor x = at::linspace(-1, 1, 20, at::kDouble).view({4, 5});
    for (int step = 0; step < 2; ++step) {
        parameters.zero_gradients();
        module.loss(x, true).backward();
        optimizer->step(parameters, 0.1);
    }
    return parameters.values().clone();
}

/// By the part `name` with `own` options of its own.
at::Tensor by_part(const std::string& name, const std::map<std::string, std::string>& own) {
    PartOptions options;
    options.optimizer.weight_decay = 0.01;
    options.own = own;
    return two_steps([&](FlatParameters& parameters) {
        return builtin_parts().optimizers.get(name)(parameters, options);
    });
}

TEST(OptimizersTest, EachReadsItsOwnOptions) {
    const OptimizerOptions options{.weight_decay = 0.01,
                                   .beta1 = 0.5,
                                   .beta2 = 0.75,
                                   .eps = 0.1,
                                   .adadelta_eps = 0.01,
                                   .rho = 0.25,
                                   .momentum = 0.5};
    const auto expected = [&](auto make) {
        return two_steps([&](FlatParameters& parameters) { return make(parameters, options); });
    };
    const std::map<std::string, std::string> adam{{"adam-betas", "0.5,0.75"}, {"adam-eps", "0.1"}};

    EXPECT_TRUE(by_part("adam", adam).equal(expected(make_adam)));
    EXPECT_TRUE(by_part("adamw", adam).equal(expected(make_adamw)));
    EXPECT_TRUE(by_part("lamb", adam).equal(expected(make_lamb)));
    EXPECT_TRUE(by_part("adadelta", {{"adadelta-eps", "0.01"}, {"rho", "0.25"}})
                    .equal(expected(make_adadelta)));
    EXPECT_TRUE(by_part("sgd", {{"momentum", "0.5"}}).equal(expected(make_sgd)));
}

TEST(OptimizersTest, DefaultsAreThoseOfTheOptimizers) {
    const auto expected = [&](auto make) {
        return two_steps([&](FlatParameters& parameters) {
            return make(parameters, OptimizerOptions{.weight_decay = 0.01});
        });
    };

    EXPECT_TRUE(by_part("adam", {}).equal(expected(make_adam)));
    EXPECT_TRUE(by_part("adamw", {}).equal(expected(make_adamw)));
    EXPECT_TRUE(by_part("lamb", {}).equal(expected(make_lamb)));
    EXPECT_TRUE(by_part("adadelta", {}).equal(expected(make_adadelta)));
    EXPECT_TRUE(by_part("sgd", {}).equal(expected(make_sgd)));
}

}  // namespace
}  // namespace hetseq
