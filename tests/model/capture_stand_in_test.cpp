// Dropout while a CUDA graph is captured, over the stand-in.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/coordinate_dropout.hpp"
#include "hetseq/model/dropout.hpp"

#include "stand_in/cuda/stand_in_cuda.hpp"

namespace hetseq {
namespace {

TEST(DropoutStandInTest, IsRefusedInACudaGraph) {
    const at::Tensor x = at::ones({2, 4}, at::kCUDA);
    const at::Tensor ids = at::arange(2, at::kLong).to(at::kCUDA);
    stand_in::set_capturing(true);
    try {
        counter_dropout(x, 0.5, {1, 2, 3}, ids);
        ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
        EXPECT_NE(std::string{error.what()}.find("a CUDA graph"), std::string::npos);
    }
    const at::Tensor matrices = at::ones({2, 4, 4}, at::kCUDA);
    EXPECT_THROW(coordinate_dropout(matrices, 0.5, {1, 2, 0}, ids), BadConfig);
    stand_in::set_capturing(false);

    EXPECT_EQ(counter_dropout(x, 0.5, {1, 2, 3}, ids).sizes(), x.sizes());
}

}  // namespace
}  // namespace hetseq
