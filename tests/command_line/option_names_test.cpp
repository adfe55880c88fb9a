#include "hetseq/command_line/option_names.hpp"

#include <set>

#include <gtest/gtest.h>

#include "hetseq/command_line/command_description.hpp"
#include "hetseq/session/options/part_option_table.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

std::string meant(const std::string& given) {
    return meant_option(given, names_of(option_table()));
}

TEST(MeantOptionTest, KnowsTheUsualNamesOfOtherPrograms) {
    EXPECT_EQ(meant("--learning-rate"), "did you mean --lr?");
    EXPECT_EQ(meant("--batchsize"), "did you mean --batch-size?");
    EXPECT_EQ(meant("--bsz"), "did you mean --batch-size?");
    EXPECT_EQ(meant("--epochs"), "did you mean --max-epoch?");
    EXPECT_EQ(meant("--max-epochs"), "did you mean --max-epoch?");
    EXPECT_EQ(meant("--wd"), "did you mean --weight-decay?");
    EXPECT_EQ(meant("--output-dir"), "did you mean --save-dir?");
    EXPECT_EQ(meant("--gradient_accumulation_steps"), "did you mean --update-freq?");
    EXPECT_EQ(meant("--pipeline_model_parallel_size"), "did you mean --virtual-workers?");
    EXPECT_EQ(meant("--stages"), "did you mean --stage-units?");
    EXPECT_EQ(meant("--chunks"), "did you mean --max-sentences?");
}

TEST(MeantOptionTest, SaysHowTheSameIsDoneWithoutAnOption) {
    EXPECT_THAT(meant("--gpus"), HasSubstr("mpirun -np N"));
    EXPECT_THAT(meant("--nproc_per_node"), HasSubstr("mpirun -np N"));
    EXPECT_THAT(meant("--num-workers"), HasSubstr("reads"));
}

TEST(MeantOptionTest, SaysHowOneComputesIn16Bits) {
    for (const char* option : {"--fp16", "--bf16", "--amp"})
        EXPECT_THAT(meant(option), HasSubstr("--precision fp16 or bf16")) << option;
}

TEST(MeantOptionTest, FindsMisspellings) {
    EXPECT_EQ(meant("--max-sentence"), "did you mean --max-sentences?");
    EXPECT_EQ(meant("--Max_Sentences"), "did you mean --max-sentences?");
    EXPECT_EQ(meant("--tsak"), "did you mean --task?");
    EXPECT_EQ(meant("max-updates"), "did you mean --max-update?");
}

TEST(MeantOptionTest, FindsTheOnlyLongerName) {
    EXPECT_EQ(meant("--checkpoint-sig"), "did you mean --checkpoint-signals?");
}

TEST(MeantOptionTest, IsEmptyWhereNothingIsNear) {
    EXPECT_EQ(meant("--zzzzzz"), "");
    EXPECT_EQ(meant("--"), "");
}

TEST(OtherNamesTest, EachIsOfAnOptionAndNoneOfOurs) {
    std::set<std::string> known;
    for (const OptionSpec& spec : option_table(builtin_parts()))
        known.insert(spec.name);
    std::set<std::string> seen;

    for (const OtherName& other : other_names()) {
        EXPECT_TRUE(known.contains(other.option)) << other.option;
        EXPECT_FALSE(known.contains(other.name)) << other.name;
        EXPECT_TRUE(seen.insert(other.name).second) << other.name << " stands there twice";
    }
}

}  // namespace
}  // namespace hetseq
