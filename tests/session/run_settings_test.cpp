#include "hetseq/session/run_settings.hpp"

#include <array>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/session/ranks/by_rank.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::Contains;
using testing::ElementsAreArray;
using testing::HasSubstr;

class RunSettingsTest : public testing::Test {
protected:
    // MNIST on CPUs, but for `values`; --dataset rows has rows of unequal length.
    RunSettings set_up(OptionValues values) const {
        values.emplace("task", "mnist");
        values.emplace("device", "cpu");
        Parts parts = builtin_parts();
        parts.datasets.add("rows", [](const PartOptions&) {
            return CorpusSchema{.kind = "rows", .fields = {{.name = "row", .is_ragged = true}}};
        });
        return set_up_ranks(world_, settle_options(world_, {values, {}}, parts), parts);
    }
    // The same on all ranks.
    std::string error_of(const OptionValues& values) const {
        std::string text = "no error";
        try {
            set_up(values);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::config);
            text = error.what();
        }
        for (const std::string& other : world_.all_gather(text))
            EXPECT_EQ(other, text);
        return text;
    }
    // values[r] of each rank r.
    std::vector<std::int64_t> by_rank(std::vector<std::int64_t> values) const {
        values.resize(static_cast<std::size_t>(world_.size()));
        return values;
    }
    std::int64_t own(const std::vector<std::int64_t>& values) const {
        return values[static_cast<std::size_t>(world_.rank())];
    }

    HostComm world_ = test::world();
};

TEST_F(RunSettingsTest, TheGlobalBatchIsTheSumOfTheCapacities) {
    const RunSettings settings = set_up({{"max-sentences", "0=3,1=1,2=0"}});

    const std::vector<std::int64_t> sums{3, 4, 4};
    EXPECT_THAT(settings.capacities, ElementsAreArray(by_rank({3, 1, 0})));
    EXPECT_EQ(settings.batch_size().samples, sums[std::size_t(world_.size()) - 1]);
}

TEST_F(RunSettingsTest, UpdateFreqMultipliesTheGlobalBatchAndIsResolved) {
    const RunSettings settings = set_up({{"max-sentences", "8"}, {"update-freq", "3"}});

    EXPECT_EQ(settings.batch_size().samples, 3 * 8 * world_.size());
    EXPECT_EQ(settings.values().at("batch-size"), std::to_string(settings.batch_size().samples));
    EXPECT_EQ(settings.values().at("update-freq"), "1");
}

TEST_F(RunSettingsTest, TypedAndWrittenValuesStayTheSame) {
    RunSettings settings = set_up({{"max-sentences", "8"}, {"update-freq", "3"}});
    EXPECT_EQ(settings.options().batch_size, 3 * 8 * world_.size());
    EXPECT_EQ(settings.options().update_freq, 1);

    settings.settle(settings.options().corpus.block_length, 17);

    EXPECT_EQ(settings.options().corpus.block_length, 17);
    EXPECT_EQ(settings.values().at("block-length"), "17");
}

TEST_F(RunSettingsTest, ABatchSizeThatIsGivenStays) {
    const RunSettings settings = set_up({{"max-sentences", "8"}, {"batch-size", "1000"}});

    EXPECT_EQ(settings.batch_size().samples, 1000);
    EXPECT_EQ(settings.values().at("batch-size"), "1000");
}

TEST_F(RunSettingsTest, ABatchSizeAndUpdateFreqAreRefused) {
    EXPECT_THAT(error_of({{"batch-size", "8"}, {"update-freq", "2"}}),
                HasSubstr("--batch-size and --update-freq"));
}

TEST_F(RunSettingsTest, NumbersOfTheRanksCommandLinesAreWrittenAsLists) {
    const auto sentences = by_rank({3, 1, 2}), cache = by_rank({64, 32, 64}),
               threads = by_rank({1, 2, 0});

    const RunSettings settings = set_up({{"max-sentences", std::to_string(own(sentences))},
                                         {"cache-mb", std::to_string(own(cache))},
                                         {"threads", std::to_string(own(threads))}});

    EXPECT_EQ(settings.values().at("max-sentences"), list_by_rank(sentences).text());
    EXPECT_EQ(settings.values().at("cache-mb"), list_by_rank(cache).text());
    EXPECT_EQ(settings.values().at("threads"), list_by_rank(threads).text());
    EXPECT_THAT(settings.capacities, ElementsAreArray(sentences));
    EXPECT_EQ(settings.corpus.cache_mb, own(cache));
}

// A task of unequal lengths whose work is counted in samples: 32 a rank, as with one length.
TEST_F(RunSettingsTest, ABatchIsCountedInSamplesWhereNoFieldCountsTokens) {
    EXPECT_EQ(set_up({{"dataset", "rows"}, {"max-sentences", ""}}).batch_size().samples,
              32 * world_.size());
    EXPECT_EQ(set_up({{"dataset", "rows"}, {"max-sentences", "8"}, {"update-freq", "2"}})
                  .batch_size()
                  .samples,
              16 * world_.size());
    // As earlier versions counted, and wrote down.
    EXPECT_EQ(set_up({{"dataset", "rows"}, {"batch-tokens", "900"}}).batch_size().units, 900);
}

// The others have no limit of samples.
TEST_F(RunSettingsTest, OneRanksCommandLineMayLimitSamplesOfUnequalLength) {
    const OptionValues values{{"dataset", "rows"},
                              {"max-tokens", "300"},
                              {"max-sentences", world_.rank() == 0 ? "16" : ""}};

    const RunSettings settings = set_up(values);

    std::vector<std::int64_t> expected(static_cast<std::size_t>(world_.size()), 1'000'000'000);
    expected.front() = 16;
    EXPECT_THAT(settings.max_samples, ElementsAreArray(expected));
    for (const std::int64_t tokens : settings.capacities)
        EXPECT_EQ(tokens, 300);
    EXPECT_EQ(settings.values().at("max-sentences"), list_by_rank(expected).text());
    EXPECT_EQ(settings.values().at("threads"), "0");
}

TEST_F(RunSettingsTest, ListsMeanThisRanksOwnNumber) {
    const RunSettings settings = set_up(
        {{"max-sentences", "0=3,1=1,2=2"}, {"cache-mb", "0=64,1-2=32"}, {"threads", "0-1=2,2=1"}});

    EXPECT_EQ(settings.values().at("max-sentences"), list_by_rank(by_rank({3, 1, 2})).text());
    EXPECT_EQ(settings.values().at("cache-mb"), list_by_rank(by_rank({64, 32, 32})).text());
    EXPECT_EQ(settings.corpus.cache_mb, own({64, 32, 32}));
    EXPECT_THAT(settings.threads, ElementsAreArray(by_rank({2, 2, 1})));
}

TEST_F(RunSettingsTest, TheSameSetUpFollowsFromWhatItWroteDown) {
    const RunSettings first = set_up(
        {{"max-sentences", "0=3,1=1,2=2"}, {"cache-mb", "0=64,1-2=32"}, {"update-freq", "2"}});

    const RunSettings again = set_up_ranks(
        world_, settle_options(world_, {{}, first.values()}, builtin_parts()), builtin_parts());

    EXPECT_EQ(again.values(), first.values());
    EXPECT_EQ(again.batch_size().samples, first.batch_size().samples);
    EXPECT_EQ(again.capacities, first.capacities);
}

TEST_F(RunSettingsTest, EachRankHasAPrecisionAndAllAreWrittenDown) {
    const RunSettings settings = set_up({{"precision", "0=bf16,1-9=tf32"}});

    std::vector<Precision> expected{Precision::bf16, Precision::fp32, Precision::fp32};
    expected.resize(static_cast<std::size_t>(world_.size()));
    EXPECT_EQ(settings.precisions, expected);
    EXPECT_EQ(settings.precision, expected[static_cast<std::size_t>(world_.rank())]);
    const std::vector<std::string> lists{"bf16", "0=bf16,1=fp32", "0=bf16,1=fp32,2=fp32"};
    EXPECT_EQ(settings.values().at("precision"), lists[std::size_t(world_.size()) - 1]);
}

TEST_F(RunSettingsTest, EachRankHasAWordOrANumberOfLayersToRecompute) {
    const RunSettings settings = set_up({{"recompute", "0=all,1=3,2-9=auto"}});

    std::vector<RecomputeChoice> expected{all_layers, 3, std::nullopt};
    expected.resize(static_cast<std::size_t>(world_.size()));
    EXPECT_EQ(settings.recompute, expected);
    EXPECT_EQ(settings.values().at("recompute"), list_by_rank(expected).text());
    EXPECT_FALSE(settings.recomputes_at_need(0));
    EXPECT_THAT(error_of({{"recompute", "some"}}), HasSubstr("a number or one of auto, none, all"));
    EXPECT_THAT(error_of({{"recompute", "0-9=some"}}),
                HasSubstr("a number or one of auto, none, all"));
}

TEST_F(RunSettingsTest, APrecisionThatADeviceHasNotIsAnErrorOnAll) {
    EXPECT_THAT(error_of({{"precision", "fp16"}}), HasSubstr("give this rank bf16 or fp32"));
    EXPECT_THAT(error_of({{"precision", "0=fp16,1-9=fp32"}}), HasSubstr("--precision fp16 on"));
    EXPECT_THAT(error_of({{"precision", "fp8"}}), HasSubstr("auto, fp32, fp64, tf32, bf16, fp16"));
    if (world_.size() > 1) {
        EXPECT_THAT(error_of({{"precision", "0=fp32,1-9=fp64"}}),
                    HasSubstr("gives fp64 to some ranks, and fp32 to rank 0"));
    }
}

TEST_F(RunSettingsTest, ARankThatNoEntryFitsIsAnErrorOnAll) {
    const std::string last = std::to_string(world_.size() - 1);
    const std::string others = std::to_string(world_.size()) + "-9=64";  // ranks that are not there

    for (const std::string option : {"max-sentences", "cache-mb", "threads"}) {
        const std::string list =
            (world_.size() > 1 ? "0-" + std::to_string(world_.size() - 2) + "=3," : "") + others;
        EXPECT_THAT(error_of({{option, list}}),
                    HasSubstr("--" + option + " has no entry for rank " + last));
    }
}

TEST_F(RunSettingsTest, RanksWithoutAnyCapacityAreRefused) {
    EXPECT_THAT(error_of({{"max-sentences", "0"}}), HasSubstr("no rank takes any work"));
}

TEST_F(RunSettingsTest, WithoutCapacityTheOptionsThatAreZeroAreNamed) {
    const auto why = [&](OptionValues values) {
        values.emplace("dataset", "rows");
        return error_of(values);
    };
    EXPECT_THAT(why({{"max-sentences", "0"}}), HasSubstr("(--max-sentences is 0 on all of them)"));
    EXPECT_THAT(why({{"max-tokens", "0"}}), HasSubstr("(--max-tokens is 0 on all of them)"));
}

TEST_F(RunSettingsTest, LimitsOfLengthWithoutLengthsAreWarnedOf) {
    testing::internal::CaptureStderr();

    set_up({{"skip-too-long", "true"}});

    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("--skip-too-long has no effect (the samples of --dataset images have "
                          "one shape)"));
}

TEST_F(RunSettingsTest, EntriesThatFitOneRankAreWarnedOfOnce) {
    testing::internal::CaptureStderr();

    set_up({{"device", "0-9=cpu,0=auto"},
            {"max-sentences", "0-9=4,0=8"},
            {"threads", "0-9=1,0=2"},
            {"cache-mb", "0-9=32,0=64"},
            {"precision", "0-9=fp32,0=bf16"},
            {"recompute", "0-9=none,0=auto"},
            {"shard-by", "0-9=1,0=2"}});

    const std::vector<std::string> lines = split(testing::internal::GetCapturedStderr(), '\n');
    for (const std::string text : {"--device: '0-9=cpu' and '0=auto'",
                                   "--max-sentences: '0-9=4' and '0=8'",
                                   "--threads: '0-9=1' and '0=2'",
                                   "--cache-mb: '0-9=32' and '0=64'",
                                   "--precision: '0-9=fp32' and '0=bf16'",
                                   "--recompute: '0-9=none' and '0=auto'",
                                   "--shard-by: '0-9=1' and '0=2'"})
        EXPECT_THAT(lines,
                    Contains(HasSubstr(text + " both fit rank 0 (the first one counts)")).Times(1));
}

TEST_F(RunSettingsTest, RanksThatTheSameEntriesFitAreNamedTogether) {
    testing::internal::CaptureStderr();

    set_up({{"shard-by", "0-9=1,0-8=2"}});

    const std::string all[] = {"rank 0", "ranks 0, 1", "ranks 0-2"};
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("'0-9=1' and '0-8=2' both fit " + all[world_.size() - 1]));
}

// Before devices are looked for: this machine need not have any.
TEST_F(RunSettingsTest, UnknownPartNamesAreRefusedAtOnce) {
    const std::vector<std::array<std::string, 3>> cases{
        {"model", "mnist-cn", "Did you mean mnist-cnn?"},
        {"dataset", "image", "Did you mean images?"},
        {"batching", "image", "Did you mean images?"},
        {"optimizer", "adamx", "Did you mean adam?"},
        {"lr-scheduler", "stepp", "Did you mean step?"}};

    for (const auto& [option, name, suggested] : cases) {
        const std::string error = error_of({{option, name}, {"device", "cuda"}});

        EXPECT_THAT(error, HasSubstr("'" + name + "'"));
        EXPECT_THAT(error, HasSubstr("--" + option));
        EXPECT_THAT(error, HasSubstr(suggested));
    }
}

}  // namespace
}  // namespace hetseq
