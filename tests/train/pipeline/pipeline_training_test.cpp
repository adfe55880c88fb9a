// A pipeline trains, saves, goes on and validates as one rank does.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/train/record/run_folder.hpp"

#include "model/chain_models.hpp"
#include "train/pipeline/staged_test.hpp"

namespace hetseq::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> tensor_files(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".safetensors")
            names.push_back(entry.path().filename());
    return names;
}

class PipelineTrainingTest : public StagedTest {
protected:
    StagedRun whole_run(const ModelCase& model) const {
        return {.staged = {.model = model}, .data = *corpus};
    }
    // The cut of this number among all; the last ranks come first where `reversed`.
    StagedRun staged_run(const ModelCase& model, std::size_t number, bool reversed = false) const {
        StagedRun run = whole_run(model);
        const auto cuts =
            all_cuts(run.staged.chain_length(), static_cast<std::size_t>(world->size()));
        run.staged.units = cuts[number % cuts.size()];
        for (int rank = world->size(); reversed && rank-- > 0;)
            run.staged.ranks.push_back(rank);
        return run;
    }
    // `trained` by one rank, while the others wait.
    fs::path trained_alone(StagedRun run,
                           const std::string& name,
                           std::int64_t stops_at = 0) const {
        fs::path saved;
        if (world->rank() == 0) {
            RunFolder folder(HostComm::serial(), base_ / name, ExistingRun::overwrite);
            folder.begin(HostComm::serial(), "", {});
            run.folder = &folder;
            run.saves = true;
            train_staged(run, HostComm::serial());
            saved = folder.checkpoints().of_update(stops_at > 0 ? stops_at : run.updates);
        }
        return world->broadcast(saved.string(), 0);
    }
    static void expect_bytes_of_one_rank(const StagedRun& alone, const StagedRun& staged) {
        const StagedResult expected = train_on_first_rank(alone, *world);
        const StagedResult result = train_staged(staged, *world);

        EXPECT_EQ(result.report.updates, 8);
        EXPECT_EQ(result.losses, expected.losses);
        for (const auto& [parameter, values] : result.values)
            EXPECT_TRUE(values.equal(expected.values.at(parameter))) << parameter;
    }
    void expect_same_files(const fs::path& a, const fs::path& b) const {
        const std::vector<std::string> names = tensor_files(a);
        EXPECT_GT(names.size(), 2U);
        EXPECT_EQ(names.size(), tensor_files(b).size());
        for (const std::string& name : names)
            EXPECT_TRUE(bytes_of(a / name) == bytes_of(b / name)) << name;
        world->barrier();  // they may be overwritten now
    }
};

// What is shown where a stage is in the middle too.
class LongPipelineTest : public PipelineTrainingTest {
protected:
    void SetUp() override {
        if (world->size() < 3)
            GTEST_SKIP() << "takes three ranks";
    }
};

TEST_F(PipelineTrainingTest, UpdatesHaveTheBytesOfOneRank) {
    for (const auto& [name, optimizer] :
         {std::pair{"Mnist", "adamw"}, {"Bert", "adamw"}, {"Bert", "lamb"}}) {
        SCOPED_TRACE(std::string(name) + " " + optimizer);
        StagedRun alone = whole_run(model_named(name));
        StagedRun staged = staged_run(model_named(name), 2);
        alone.optimizer = staged.optimizer = optimizer;

        expect_bytes_of_one_rank(alone, staged);
    }
}

TEST_F(LongPipelineTest, TiedParametersStayTheSameOnAllTheirStages) {
    // Adam's steps grow roundings of gradients that are nearly 0.
    for (const auto& [name, optimizer, tolerance] : {std::tuple{"TiedBert", "sgd", 1e-12},
                                                     {"SharedByAllPreNorm", "sgd", 1e-12},
                                                     {"SharedByAllPreNorm", "adamw", 1e-8}}) {
        SCOPED_TRACE(std::string(name) + " " + optimizer);
        StagedRun alone = whole_run(model_named(name));
        StagedRun staged = staged_run(model_named(name), 1);
        alone.optimizer = staged.optimizer = optimizer;
        alone.staged.precision = staged.staged.precision = Precision::fp64;

        const StagedResult expected = train_on_first_rank(alone, *world);
        const StagedResult result = train_staged(staged, *world);

        for (const auto& [parameter, values] : result.values)
            EXPECT_LE((values - expected.values.at(parameter)).abs().max().item<double>(),
                      tolerance)
                << parameter;
        for (const std::string& parameter : tied_names(staged.staged.model)) {
            const auto found = result.values.find(parameter);
            std::set<std::string> bits;
            for (const std::string& text : world->all_gather(
                     found == result.values.end() ? std::string()
                                                  : std::to_string(bits_of(found->second))))
                if (!text.empty())
                    bits.insert(text);
            EXPECT_EQ(bits.size(), 1U) << parameter;
        }
    }
}

TEST_F(LongPipelineTest, AStageThatTrainsNothingGoesAlong) {
    const BertClassifierSetup setup{.labels = {"A", "B", "C"}, .frozen_layers = 1};
    const ModelCase model{"Frozen",
                          [=] { return make_bert_sequence_classifier(chain_bert_config(), setup); },
                          labelled_texts};
    const fs::path alone = trained_alone(whole_run(model), "alone");
    const fs::path saved = trained(staged_run(model, 0), "saved");

    expect_same_files(saved, alone);
}

TEST_F(LongPipelineTest, CheckpointsHaveTheBytesOfOneRankHoweverItIsCut) {
    for (const char* name : {"Mnist", "Bert"}) {
        const ModelCase model = model_named(name);
        const fs::path alone = trained_alone(whole_run(model), "alone");
        for (const std::size_t cut : name == std::string("Mnist")
                                         ? std::vector<std::size_t>{0}
                                         : std::vector<std::size_t>{0, 3}) {
            SCOPED_TRACE(std::string(name) + " " + std::to_string(cut));
            expect_same_files(trained(staged_run(model, cut, cut > 0), "saved"), alone);
        }
    }
}

TEST_F(LongPipelineTest, ARunGoesOnInOtherStagesOnOneRankAndBack) {
    const ModelCase model = model_named("Bert");
    const fs::path alone = trained_alone(whole_run(model), "alone");
    StagedRun first = staged_run(model, 0), second = whole_run(model),
              third = staged_run(model, 2, true);
    first.updates = 3;
    second.updates = 5;

    second.from = trained(first, "first");
    third.from = trained_alone(second, "second");
    const fs::path last = trained(third, "third");

    expect_same_files(last, alone);
}

// Each stage reads its own copy, and its state.
TEST_F(LongPipelineTest, TiedParametersAndTheirStateAreReadAgain) {
    const ModelCase model = model_named("TiedBert");
    const fs::path uninterrupted = trained(staged_run(model, 0), "uninterrupted");
    StagedRun first = staged_run(model, 0), second = staged_run(model, 0);
    first.updates = 3;

    second.from = trained(first, "first");

    expect_same_files(trained(second, "second"), uninterrupted);
}

TEST_F(LongPipelineTest, TheBestModelHasTheBytesOfOneRank) {
    const ModelCase model = model_named("Bert");
    const auto best = [&](StagedRun run, const HostComm& ranks, const std::string& name) {
        RunFolder folder(ranks, base_ / name, ExistingRun::overwrite);
        folder.begin(ranks, "", {});
        run.folder = &folder;
        run.validates = true;
        run.updates = 4;
        return train_staged(run, ranks).report.last_valid.value();
    };
    Evaluation expected;
    if (world->rank() == 0)
        expected = best(whole_run(model), HostComm::serial(), "alone");

    const Evaluation found = best(staged_run(model, 2, true), *world, "staged");

    if (world->rank() == 0) {
        EXPECT_EQ(found.loss(), expected.loss());
        EXPECT_TRUE(bytes_of(base_ / "staged/best.safetensors") ==
                    bytes_of(base_ / "alone/best.safetensors"));
        EXPECT_GT(bytes_of(base_ / "staged/best.safetensors").size(), 100'000U);
    }
}

TEST_F(LongPipelineTest, ValidationHasTheNumbersOfOneRank) {
    for (const char* name : {"Mnist", "BertInRows", "TokenLabels", "Transformer"}) {
        SCOPED_TRACE(name);
        const Evaluation expected =
            evaluate_staged(whole_run(model_named(name)), HostComm::serial());

        const Evaluation found = evaluate_staged(staged_run(model_named(name), 1), *world);

        EXPECT_EQ(found.samples, samples);
        ASSERT_EQ(found.losses.size(), expected.losses.size());
        for (std::size_t i = 0; i < expected.losses.size(); ++i)
            EXPECT_EQ(found.losses[i].value, expected.losses[i].value);
        ASSERT_EQ(found.metrics.size(), expected.metrics.size());
        for (std::size_t i = 0; i < expected.metrics.size(); ++i)
            EXPECT_EQ(found.metrics[i].value, expected.metrics[i].value);
    }
}

// docs/virtual-workers.md, "Staleness".
TEST_F(LongPipelineTest, LateUpdatesHaveTheBytesOfOneRank) {
    for (const auto& [name, staleness] : {std::pair{"Mnist", 1}, {"Bert", 1}, {"Bert", 2}}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(staleness));
        StagedRun alone = whole_run(model_named(name));
        StagedRun staged = staged_run(model_named(name), 2);
        alone.staleness = staged.staleness = staleness;

        expect_bytes_of_one_rank(alone, staged);
    }
}

TEST_F(PipelineTrainingTest, PendingSumsHaveTheBytesOfOneRankAndGoOnInOtherStages) {
    const ModelCase model = model_named("Bert");
    StagedRun whole = whole_run(model), first = staged_run(model, 0), second = whole_run(model),
              third = staged_run(model, 2, true);
    for (StagedRun* run : {&whole, &first, &second, &third})
        run->staleness = 2;
    StagedRun first_alone = whole;
    first.stop_after = first_alone.stop_after = 3;
    second.stop_after = 2;
    const fs::path alone = trained_alone(whole, "alone");

    second.from = trained(first, "first", 3);
    expect_same_files(second.from, trained_alone(first_alone, "first_alone", 3));
    third.from = trained_alone(second, "second", 5);
    const fs::path last = trained(third, "third");

    expect_same_files(last, alone);
}

TEST_F(LongPipelineTest, TiedParametersHaveTheirPendingSumsAgain) {
    const ModelCase model = model_named("TiedBert");
    StagedRun run = staged_run(model, 0);
    run.staleness = 2;
    const fs::path uninterrupted = trained(run, "uninterrupted");
    StagedRun first = run, second = run;
    first.stop_after = 3;

    second.from = trained(first, "first", 3);

    expect_same_files(trained(second, "second"), uninterrupted);
}

}  // namespace
}  // namespace hetseq::test
