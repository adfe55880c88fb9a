#include <gtest/gtest.h>
#include <torch/torch.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {
namespace {

TEST(BatchStatisticsTest, BatchNormalisationIsRefusedByName) {
    struct Net : torch::nn::Module {
        Net() {
            register_module(
                "body", torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4)));
        }
    };
    const Net net;
    try {
        check_no_batch_statistics(net);
        FAIL() << "accepted";
    } catch (const BadConfig& error) {
        EXPECT_NE(std::string(error.what()).find("body.1"), std::string::npos) << error.what();
    }
}

TEST(BatchStatisticsTest, InstanceNormalisationMayNotTrackBatches) {
    const torch::nn::Sequential net(
        torch::nn::InstanceNorm2d(torch::nn::InstanceNorm2dOptions(4).track_running_stats(true)));

    EXPECT_THROW(check_no_batch_statistics(*net), BadConfig);
}

TEST(BatchStatisticsTest, LayerNormalisationIsAccepted) {
    const torch::nn::Sequential net(torch::nn::Linear(3, 4),
                                    torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})));

    EXPECT_NO_THROW(check_no_batch_statistics(*net));
}

}  // namespace
}  // namespace hetseq
