// A model that is cut into stages computes what the whole one computes.
#include "hetseq/model/chain.hpp"

#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "gpu.hpp"
#include "model/chain_models.hpp"
#include "model/mixed_model.hpp"
#include "model/recomputations.hpp"
#include "model/stage_passes.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::backwarded, test::Computed, test::computed_in_stages, test::computed_whole;
using test::cuts_in_three, test::cuts_of, test::forwarded, test::Journey, test::ModelCase,
    test::Recomputations;
using test::stages_of, test::text_of;
using testing::ElementsAre;

// The same bytes, but for the gradients of `tied` parameters, whose parts are added in another
// order: `tolerance` is relative to the largest element of each.
void expect_equal(const Computed& cut,
                  const Computed& whole,
                  const std::set<std::string>& tied,
                  double tolerance) {
    ASSERT_EQ(cut.losses.size(), whole.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        EXPECT_TRUE(cut.losses[i].equal(whole.losses[i])) << i;
    EXPECT_EQ(cut.gradients.size(), whole.gradients.size());
    for (const auto& [name, gradient] : whole.gradients) {
        ASSERT_EQ(cut.gradients.count(name), 1U) << name;
        const at::Tensor& own = cut.gradients.at(name);
        const double bound =
            tied.count(name) == 0 ? 0 : tolerance * gradient.abs().max().item<double>();
        EXPECT_LE((own - gradient).abs().max().item<double>(), bound) << name;
    }
}

void expect_near(const Computed& cut, const Computed& whole, double tolerance) {
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
        EXPECT_NEAR(cut.losses[i].item<double>() / whole.losses[i].item<double>(), 1, tolerance);
    EXPECT_EQ(cut.gradients.size(), whole.gradients.size());
    for (const auto& [name, gradient] : whole.gradients)
        EXPECT_LE((cut.gradients.at(name) - gradient).norm().item<double>(),
                  tolerance * gradient.norm().item<double>())
            << name;
}

class ChainTest : public testing::TestWithParam<ModelCase> {
protected:
    std::shared_ptr<Model> whole(Precision precision, at::Device device = at::kCPU) const {
        const auto model = GetParam().make();
        initialise_parameters(*model, 3);
        model->to(device, precision);
        return model;
    }
    std::size_t units() const { return GetParam().make()->chain().size(); }
    // Those that several units read.
    std::set<std::string> tied() const {
        std::set<std::string> names, twice;
        for (const ChainUnit& unit : GetParam().make()->chain())
            for (const std::string& name : unit.parameters)
                if (!names.insert(name).second)
                    twice.insert(name);
        return twice;
    }
    MicroBatch batch(std::int64_t begin, std::int64_t count) const {
        return GetParam().batch(begin, count);
    }
};

TEST_P(ChainTest, EveryCutGivesTheSameBits) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        const std::vector<MicroBatch> one{batch(0, 3)};
        const Computed expected = computed_whole(*whole(precision), one);

        for (const auto& cut :
             precision == Precision::fp32 ? cuts_of(units()) : cuts_in_three(units())) {
            SCOPED_TRACE(text_of(cut) + " in " + to_string(precision));
            const auto stages = stages_of(GetParam(), cut, 3, precision);
            expect_equal(computed_in_stages(stages, one), expected, tied(), 1e-6);
        }
    }
}

TEST_P(ChainTest, MicroBatchesInFlightGiveTheSameBits) {
    const std::vector<MicroBatch> several{batch(0, 3), batch(3, 1), batch(4, 4)};
    const Computed expected = computed_whole(*whole(Precision::fp64), several);

    for (const auto& cut : cuts_in_three(units())) {
        SCOPED_TRACE(text_of(cut));
        const auto stages = stages_of(GetParam(), cut, 3, Precision::fp64);
        expect_equal(computed_in_stages(stages, several), expected, tied(), 1e-12);
    }
}

// A kernel adds the gradients of a tensor and of its copy in 16 bits, where a stage adds them.
TEST_P(ChainTest, OnAGpuEveryCutGivesNearlyTheSame) {
    HETSEQ_NEEDS_GPU();
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        const std::vector<MicroBatch> one{test::on(test::gpu(), batch(0, 3))};
        const Computed expected = computed_whole(*whole(precision, test::gpu()), one);

        for (const auto& cut : cuts_of(units())) {
            SCOPED_TRACE(text_of(cut) + " in " + to_string(precision));
            const auto stages = stages_of(GetParam(), cut, 3, precision, test::gpu());
            expect_near(computed_in_stages(stages, one), expected, 1e-3);
        }
    }
}

TEST_P(ChainTest, RecomputedLayersOfStagesGiveTheSameBits) {
    const std::vector<MicroBatch> one{batch(0, 4)};
    const auto model = whole(Precision::fp32);
    const std::int64_t layers = model->recomputable_layers();
    const Computed expected = computed_whole(*model, one);

    for (const auto& cut : cuts_in_three(units())) {
        SCOPED_TRACE(text_of(cut));
        const auto stages = stages_of(GetParam(), cut, 3, Precision::fp32);
        std::int64_t of_stages = 0;
        for (const auto& stage : stages) {
            of_stages += stage->recomputable_layers();
            stage->recompute(stage->recomputable_layers());
        }
        EXPECT_EQ(of_stages, layers);
        const Recomputations counted;
        expect_equal(computed_in_stages(stages, one), expected, tied(), 1e-6);
        EXPECT_EQ(counted.made(), layers);
    }
}

// The first ones of each.
TEST_P(ChainTest, AStageCountsTheLayersItHolds) {
    for (const auto& cut : cuts_in_three(units())) {
        SCOPED_TRACE(text_of(cut));
        const auto stages = stages_of(GetParam(), cut, 3, Precision::fp32);
        std::int64_t ones = 0;
        for (const auto& stage : stages)
            if (stage->recomputable_layers() > 0) {
                stage->recompute(1);
                ++ones;
            }
        const Recomputations counted;
        computed_in_stages(stages, {batch(0, 2)});
        EXPECT_EQ(counted.made(), ones);
    }
}

TEST_P(ChainTest, AnEvaluationInStagesIsThatOfTheWhole) {
    const auto model = whole(Precision::fp32);
    const MicroBatch all = batch(0, 5);
    const ForwardContext evaluation{.mode = Mode::evaluate};
    const ForwardResult expected = run_forward(*model, all, evaluation);

    for (std::size_t at = 1; at < units(); ++at) {
        const Carried front = run_chain_units(*model, {0, at}, {}, all, evaluation);
        const ForwardResult result =
            run_chain_units(*model, {at, units()}, front, all, evaluation).result;

        ASSERT_EQ(result.metrics.size(), expected.metrics.size());
        for (std::size_t i = 0; i < expected.losses.size(); ++i)
            EXPECT_TRUE(result.losses[i].equal(expected.losses[i])) << at;
        for (std::size_t i = 0; i < expected.metrics.size(); ++i)
            EXPECT_TRUE(result.metrics[i].equal(expected.metrics[i])) << at;
        EXPECT_EQ(result.output.defined(), expected.output.defined());
        EXPECT_TRUE(!expected.output.defined() || result.output.equal(expected.output)) << at;
    }
}

TEST_P(ChainTest, UnitsNameAllParametersAndTheLayersThatAreRecomputed) {
    const auto model = GetParam().make();
    std::set<std::string> named, registered;
    std::int64_t layers = 0;

    for (const ChainUnit& unit : model->chain()) {
        EXPECT_FALSE(unit.parameters.empty()) << unit.kind;
        named.insert(unit.parameters.begin(), unit.parameters.end());
        layers += unit.recomputes ? 1 : 0;
    }

    for (const NamedTensor& parameter : model->named_parameters())
        registered.insert(parameter.name);
    EXPECT_EQ(named, registered);
    EXPECT_EQ(layers, model->recomputable_layers());
}

INSTANTIATE_TEST_SUITE_P(Models, ChainTest, testing::ValuesIn(test::chain_models()), test::name_of);

std::vector<std::string> kinds_of(const Model& model) {
    std::vector<std::string> kinds;
    for (const ChainUnit& unit : model.chain())
        kinds.push_back(unit.kind);
    return kinds;
}

TEST(ChainKindsTest, UnitsThatCostTheSameAreOfOneKind) {
    const auto transformer = test::chain_transformer(
        TransformerConfig::SharedEmbeddings::none, true, TransformerConfig::Positions::sinusoidal);

    EXPECT_THAT(kinds_of(*test::untied_bert()),
                ElementsAre("embeddings", "layer", "layer", "last layer", "head"));
    EXPECT_THAT(kinds_of(*transformer),
                ElementsAre("encoder embeddings",
                            "encoder layer",
                            "encoder layer",
                            "decoder embeddings",
                            "decoder layer",
                            "decoder layer",
                            "output"));
    EXPECT_THAT(kinds_of(*make_mnist_cnn()), ElementsAre("convolutions", "hidden", "output"));
}

// Stages are on unlike devices.
TEST(ChainPrecisionTest, AStageInFp32TakesWhatOneIn16BitsGives) {
    const ModelCase mnist{"Mnist", [] { return make_mnist_cnn(); }, test::images};
    const auto front = stages_of(mnist, {{0, 2}}, 3, Precision::bf16).front();
    const auto back = stages_of(mnist, {{2, 3}}, 3, Precision::fp32).front();

    const Journey journey = forwarded({front, back}, test::images(0, 4));
    backwarded(journey);

    EXPECT_EQ(journey.made[0][0].scalar_type(), at::kBFloat16);
    EXPECT_EQ(journey.loss.scalar_type(), at::kFloat);
    EXPECT_EQ(journey.given[1][0].grad().scalar_type(), at::kBFloat16);
    EXPECT_GT(front->find_parameter("conv1.weight").grad().abs().max().item<double>(), 0);
}

TEST(ChainKindsTest, AModelWithoutAChainRunsWhole) {
    test::MixedModel model;

    const UnitRange held = model.held_units();
    const ForwardResult result = run_chain_units(model, held, {}, {}, {}).result;

    EXPECT_EQ(held, UnitRange{});
    EXPECT_TRUE(result.losses.front().equal(model.forward({}, {}).losses.front()));
    EXPECT_TRUE(model.is_held("trained"));
}

}  // namespace
}  // namespace hetseq
