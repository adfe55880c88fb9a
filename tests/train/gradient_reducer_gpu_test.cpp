// Gradients that a backward makes on a GPU are added to the flat ones a bucket at a time.
#include <memory>
#include <stdexcept>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/model/tensor_registry.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/gradient_reducer.hpp"

#include "gpu.hpp"
#include "train/whole_sums.hpp"

namespace hetseq {
namespace {

// Records the tensors that are to be summed, as they are then.
class SumLog final : public test::WholeSums {
public:
    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 1; }
    at::Device device() const noexcept override { return test::gpu(); }
    std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override {
        given.push_back(tensor.clone());
        return std::make_unique<Nothing>();
    }
    void broadcast(at::Tensor, int) override {}

    std::vector<at::Tensor> given;

private:
    struct Nothing final : Work {
        void wait() override {}
        bool done() override { return true; }
        double own_ms() override { return 0; }
    };
};

struct Parameters : TensorRegistry {
    explicit Parameters(at::Device device) {
        const auto make = [&](const char* name, at::IntArrayRef sizes, double first) {
            const at::Tensor values =
                at::arange(c10::multiply_integers(sizes), at::kDouble).view(sizes) + first;
            return register_parameter(name, values.to(device));
        };
        twice = make("twice", {3, 4}, 1);
        unused = make("unused", {5}, 2);
        table = make("table", {6, 4}, 3);
        transposed = make("transposed", {4, 3}, 4);
    }
    // `twice` has two uses, and the gradient of `transposed` arrives in another layout.
    at::Tensor loss(double factor) const {
        const at::Tensor ids =
            at::tensor({1, 1, 4}, at::TensorOptions(at::kLong).device(twice.device()));
        const at::Tensor rows = at::embedding(table, ids, -1, false, is_sparse);
        return ((rows * twice).mm(transposed).mm(transposed.t()) * twice).sum() * factor;
    }

    at::Tensor twice, unused, table, transposed;
    bool is_sparse = false;
};

class GradientsOnGpuTest : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        HETSEQ_NEEDS_GPU();
        if (GetParam() && !has_sparse_tensors())
            GTEST_SKIP() << "no GPU: a stand-in for one has no sparse tensors";
    }

private:
    static bool has_sparse_tensors() {
        try {
            at::ones({2}, at::TensorOptions(at::kDouble).device(test::gpu())).to_sparse();
            return true;
        } catch (const std::exception&) {
            return false;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(DenseAndSparse, GradientsOnGpuTest, testing::Bool());

TEST_P(GradientsOnGpuTest, AddUpOverMicroBatchesAsOnACpu) {
    std::vector<at::Tensor> sums;
    for (const at::Device device : {at::Device(at::kCPU), test::gpu()}) {
        Parameters parameters(device);
        parameters.is_sparse = GetParam();
        FlatParameters flat(parameters, [](const std::string&) { return true; });
        SumLog sum_log;
        GradientReducer reducer(flat, sum_log, 1);
        flat.zero_gradients();
        for (const double factor : {1.0, 0.25}) {
            if (factor < 1)
                reducer.arm();
            reducer.add_gradients_of([&] { parameters.loss(factor).backward(); });
        }
        const std::size_t early = sum_log.given.size();
        reducer.start_rest(at::zeros({1}, at::TensorOptions(at::kDouble).device(device)));
        reducer.finish();

        // Layout order: transposed, table, unused, ...: what stands before the unused one leaves
        // while backward runs.
        EXPECT_EQ(early, 2U);
        ASSERT_EQ(sum_log.given.size(), 5U);  // four buckets and the status
        sum_log.given.pop_back();
        EXPECT_TRUE(at::equal(at::cat(sum_log.given), flat.gradients()));
        EXPECT_TRUE(parameters.unused.grad().is_alias_of(flat.gradients()));
        EXPECT_TRUE(parameters.twice.grad().is_alias_of(flat.gradients()));
        sums.push_back(flat.gradients().cpu());
    }
    EXPECT_TRUE(at::allclose(sums[0], sums[1], 1e-14, 1e-14));
    EXPECT_GT(sums[0].abs().sum().item<double>(), 0);
}

// Ends backward half-way.
struct Failing : torch::autograd::Function<Failing> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
        return x.clone();
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   const torch::autograd::variable_list&) {
        throw std::runtime_error("half-way");
    }
};

TEST(GradientsOnGpu, AreViewsAgainWhereBackwardFails) {
    HETSEQ_NEEDS_GPU();
    Parameters parameters(test::gpu());
    FlatParameters flat(parameters, [](const std::string&) { return true; });
    SumLog sum_log;
    GradientReducer reducer(flat, sum_log, 1);
    const auto backward = [&] {
        (Failing::apply(parameters.twice).sum() + parameters.transposed.square().sum()).backward();
    };

    EXPECT_THROW(reducer.add_gradients_of(backward), std::runtime_error);

    for (const at::Tensor& parameter : {parameters.twice, parameters.transposed})
        EXPECT_TRUE(parameter.grad().is_alias_of(flat.gradients()));
    flat.zero_gradients();
    reducer.add_gradients_of([&] { parameters.transposed.sum().backward(); });
    EXPECT_TRUE(at::equal(parameters.transposed.grad().cpu(), at::ones({4, 3}, at::kDouble)));
}

}  // namespace
}  // namespace hetseq
