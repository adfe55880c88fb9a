#include "session/operator_counter.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/record_function.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names_of(const OperatorCounter& counter) {
    std::vector<std::string> names;
    for (const OperatorWork& work : counter.operators())
        names.push_back(work.name);
    return names;
}

double flops_of(const OperatorCounter& counter) {
    double flops = 0;
    for (const OperatorWork& work : counter.operators())
        flops += work.flops;
    return flops;
}

TEST(OperatorCounter, CountsTheArithmeticAndTheTensorsOfAProduct) {
    const at::Tensor left = at::ones({3, 5}), right = at::ones({5, 7});
    const OperatorCounter counter;
    at::mm(left, right);
    ASSERT_THAT(names_of(counter), ElementsAre("aten::mm"));
    const OperatorWork& product = counter.operators().front();
    EXPECT_EQ(product.flops, 2 * 3 * 5 * 7);
    EXPECT_EQ(product.precision, Precision::fp32);
    EXPECT_THAT(product.tensor_bytes, UnorderedElementsAre(4 * 15, 4 * 35, 4 * 21));
}

TEST(OperatorCounter, AnOperatorMadeOfOthersIsNotCountedItself) {
    const at::Tensor rows = at::ones({2, 3, 5}, at::kDouble),
                     weight = at::ones({7, 5}, at::kDouble);
    const OperatorCounter counter;
    at::matmul(rows, weight.t());
    EXPECT_THAT(names_of(counter), ElementsAre("aten::mm"));
    EXPECT_EQ(flops_of(counter), 2 * 6 * 5 * 7);
    EXPECT_EQ(counter.operators().front().precision, Precision::fp64);
}

TEST(OperatorCounter, NeitherViewsNorEmptyMemoryAreWork) {
    const at::Tensor values = at::ones({4, 6});
    const OperatorCounter counter;
    values.view({2, 12}).transpose(0, 1).narrow(0, 0, 3).detach();
    at::empty({1000}).reshape({10, 100});
    EXPECT_THAT(names_of(counter), ElementsAre());
}

TEST(OperatorCounter, WritingInPlaceIsWork) {
    const at::Tensor values = at::ones({4, 6});
    const OperatorCounter counter;
    values.add_(values);
    values.zero_();
    EXPECT_THAT(names_of(counter), ElementsAre("aten::add_", "aten::zero_"));
}

TEST(OperatorCounter, BackwardOfAProductIsTwoProducts) {
    const at::Tensor left = at::ones({3, 5}).requires_grad_();
    const at::Tensor right = at::ones({5, 7}).requires_grad_();
    const OperatorCounter counter;
    at::mm(left, right).sum().backward();
    EXPECT_EQ(flops_of(counter), 3 * 2 * 3 * 5 * 7);
}

// Each of 2 x 6 x 6 x 6 outputs takes 3 x 3 x 3 products.
TEST(OperatorCounter, CountsConvolutionsAndBothOfTheirGradients) {
    const at::Tensor images = at::ones({2, 3, 8, 8}).requires_grad_();
    const at::Tensor filters = at::ones({6, 3, 3, 3}).requires_grad_();
    const double forward = 2.0 * (2 * 6 * 6 * 6) * (3 * 3 * 3);
    {
        const OperatorCounter counter;
        at::conv2d(images, filters);
        EXPECT_EQ(flops_of(counter), forward);
    }
    const OperatorCounter counter;
    at::conv2d(images, filters).sum().backward();
    EXPECT_EQ(flops_of(counter), 3 * forward);
}

TEST(OperatorCounter, ImagesWithoutGradientSaveHalfOfAConvolutionsBackward) {
    const at::Tensor images = at::ones({2, 3, 8, 8});
    const at::Tensor filters = at::ones({6, 3, 3, 3}).requires_grad_();
    const OperatorCounter counter;
    at::conv2d(images, filters).sum().backward();
    EXPECT_EQ(flops_of(counter), 2 * 2.0 * (2 * 6 * 6 * 6) * (3 * 3 * 3));
}

// 2 rows, 3 heads, 8 places, 16 wide.
TEST(OperatorCounter, CountsAttention) {
    const at::Tensor input = at::ones({2, 3, 8, 16}).requires_grad_();
    const double forward = 4.0 * 2 * 3 * 8 * 8 * 16;
    const OperatorCounter counter;
    at::scaled_dot_product_attention(input, input, input).sum().backward();
    SCOPED_TRACE(testing::PrintToString(names_of(counter)));
    EXPECT_EQ(flops_of(counter), 3 * forward);
}

TEST(OperatorCounter, AnOwnOperatorHasTheWorkOfItsParts) {
    const at::Tensor left = at::ones({3, 5}), right = at::ones({5, 7});
    const OperatorCounter counter;
    {
        RECORD_FUNCTION("hetseq::both", std::vector<c10::IValue>({left}));
        at::mm(left, right);
        at::mm(left, right);
    }
    ASSERT_THAT(names_of(counter), ElementsAre("hetseq::both"));
    EXPECT_EQ(flops_of(counter), 2 * 2 * 3 * 5 * 7);
    EXPECT_EQ(counter.operators().front().tensor_bytes.size(), 7U);
}

TEST(OperatorCounter, CountsNumbersThatTheHostReads) {
    const at::Tensor values = at::ones({4});
    const OperatorCounter counter;
    EXPECT_EQ(values.sum().item<float>(), 4);
    EXPECT_EQ(values[2].item<float>(), 1);
    EXPECT_EQ(counter.numbers_read(), 2);
}

TEST(OperatorCounter, CountsNothingAfterItsEnd) {
    std::size_t before = 0;
    {
        const OperatorCounter counter;
        at::ones({4});
        before = counter.operators().size();
    }
    at::ones({4});
    const OperatorCounter counter;
    EXPECT_EQ(before, 1U);
    EXPECT_TRUE(counter.operators().empty());
}

}  // namespace
}  // namespace hetseq
