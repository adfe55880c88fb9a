#include "hetseq/command_line/command_words.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/prepare/prepare_images.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/app/command_table.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

CommandWords parse(const std::string& command, const std::vector<std::string>& words) {
    return parse_command_words(find_command(command).description, words, option_table());
}

std::string error_of(const std::string& command, const std::vector<std::string>& words) {
    try {
        parse(command, words);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

ExitCode code_of(const std::string& command, const std::vector<std::string>& words) {
    try {
        parse(command, words);
    } catch (const Error& error) {
        return error.code();
    }
    return ExitCode::finished;
}

TEST(CommandWordsTest, KeepsValuesSwitchesAndArguments) {
    const CommandWords words =
        parse("train", {"inputs/a.cfg", "--lr", "0.5", "--overwrite", "--seed=7"});

    EXPECT_THAT(words.arguments, ElementsAre("inputs/a.cfg"));
    EXPECT_EQ(words.options, (OptionValues{{"lr", "0.5"}, {"overwrite", "true"}, {"seed", "7"}}));
}

TEST(CommandWordsTest, TellsFormArgumentsAndOwnOptionsApartInAnyOrder) {
    const CommandWords words = parse("prepare", {"--output", "out", "images", "a.gz", "b.gz"});

    EXPECT_EQ(words.form, "images");
    EXPECT_THAT(words.arguments, ElementsAre("a.gz", "b.gz"));
    EXPECT_EQ(words.read(prepare_images_options()).output, "out");
    EXPECT_EQ(words.read(prepare_images_options()).shards, 1);
}

TEST(CommandWordsTest, LastOfTwoValuesWins) {
    testing::internal::CaptureStderr();

    const CommandWords words =
        parse("train", {"--lr", "1", "--lr=3", "--json", "--json", "--lr", "2"});

    EXPECT_EQ(words.options.at("lr"), "2");
    EXPECT_THAT(
        testing::internal::GetCapturedStderr(),
        HasSubstr("--lr is given more than once (1, 3, then 2 on the command line): 2 is taken\n"));
}

// docs/exit-codes.md: as in a configuration.
TEST(CommandWordsTest, AWrongOptionHasAnotherCodeThanAWrongWord) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--max-sentence", "3"}, {"--lr"}, {"-np", "2"}})
        EXPECT_EQ(code_of("train", words), ExitCode::config);
    EXPECT_EQ(code_of("prepare", {"images", "a"}), ExitCode::config);
    EXPECT_EQ(code_of("train", {"a.cfg", "b.cfg"}), ExitCode::usage);
    EXPECT_EQ(code_of("report", {}), ExitCode::usage);
    EXPECT_EQ(code_of("bench", {"stpe"}), ExitCode::usage);
}

TEST(FindCommandTest, SaysWhatStandsWhereTheCommandBelongs) {
    const auto error_at = [](const std::string& word) -> std::string {
        try {
            find_command(word);
        } catch (const BadUsage& error) {
            return error.what();
        }
        return "no error";
    };
    EXPECT_THAT(error_at("trian"), HasSubstr("Did you mean train?"));
    EXPECT_THAT(error_at("inputs/mnist.cfg"),
                HasSubstr("(it is a configuration): hetseq train inputs/mnist.cfg"));
    EXPECT_THAT(error_at("task.py:Mine"), HasSubstr("hetseq train task.py:Mine"));
    EXPECT_THAT(error_at("/tmp"), HasSubstr("(it is a folder): hetseq evaluate /tmp"));
    EXPECT_THAT(error_at("-np"), HasSubstr("mpirun -np N"));
    EXPECT_THAT(error_at("-v"), HasSubstr("hetseq --version"));
    EXPECT_THAT(error_at("--lr"), HasSubstr("hetseq COMMAND --lr"));
}

TEST(CommandWordsTest, NamesTheNearestOption) {
    EXPECT_THAT(error_of("train", {"--max-sentence", "3"}),
                HasSubstr("did you mean --max-sentences?"));
    EXPECT_THAT(error_of("train", {"--learning-rate=3"}),
                HasSubstr("unknown option '--learning-rate': did you mean --lr?"));
    EXPECT_THAT(error_of("prepare", {"images", "--outptu", "x"}),
                HasSubstr("did you mean --output?"));
}

TEST(CommandWordsTest, RefusesAnOptionThatTheCommandDoesNotUse) {
    EXPECT_THAT(error_of("check", {"--lr", "1"}), HasSubstr("check does not use --lr"));
    EXPECT_THAT(error_of("evaluate", {"RUN", "--max-epoch=1"}),
                HasSubstr("evaluate does not use --max-epoch"));
    EXPECT_THAT(error_of("bench", {"reduce", "--data", "x"}),
                HasSubstr("bench reduce does not use --data"));
    EXPECT_THAT(error_of("bench", {"step", "--save-dir", "x"}),
                HasSubstr("does not use --save-dir"));
    EXPECT_THAT(error_of("checkpoint", {"list", "RUN", "--output", "x"}),
                HasSubstr("checkpoint list does not use --output"));
    EXPECT_EQ(error_of("bench", {"data", "--data", "x"}), "no error");
}

TEST(CommandWordsTest, SuggestsNoOptionThatTheCommandDoesNotUse) {
    EXPECT_THAT(error_of("check", {"--learning-rate", "1"}), Not(HasSubstr("--lr")));
}

TEST(CommandWordsTest, RefusesAnOptionWithoutItsValue) {
    EXPECT_THAT(error_of("train", {"--lr"}), HasSubstr("lr"));
}

// The library would look for its placeholders in them without end.
TEST(CommandWordsTest, RefusesWordsThatHoldPlaceholdersOfTheLibrary) {
    EXPECT_THAT(error_of("train", {"--overwrite=%canonical_option%%value%"}),
                HasSubstr("%canonical_option%"));
}

TEST(CommandWordsTest, RefusesAnUnknownForm) {
    EXPECT_THAT(error_of("bench", {"stpe"}), HasSubstr("Did you mean step?"));
    EXPECT_THAT(error_of("bench", {}), HasSubstr("needs one of data, step, reduce, roofline"));
}

TEST(CommandWordsTest, SaysWhichArgumentIsMissingAndWhatItIs) {
    EXPECT_THAT(error_of("prepare", {"images", "--output", "x"}),
                AllOf(HasSubstr("IDX is missing"),
                      HasSubstr("files of images"),
                      HasSubstr("hetseq prepare images IDX... --output DIR [--shards N]")));
    EXPECT_THAT(error_of("prepare", {"images", "a"}), HasSubstr("--output is missing"));
    EXPECT_THAT(error_of("report", {}), HasSubstr("RUN is missing"));
}

TEST(CommandWordsTest, RefusesAWordTooMany) {
    EXPECT_THAT(error_of("train", {"a.cfg", "b.cfg"}), HasSubstr("'b.cfg' is one word too many"));
    EXPECT_THAT(error_of("info", {"here"}), HasSubstr("'here' is one word too many"));
    EXPECT_EQ(error_of("report", {"a", "b", "c"}), "no error");
}

TEST(CommandWordsTest, RefusesShortOptions) {
    EXPECT_THAT(error_of("train", {"-x"}), HasSubstr("unknown option '-x'"));
    EXPECT_THAT(error_of("train", {"-lr", "1"}), HasSubstr("did you mean --lr?"));
    EXPECT_THAT(error_of("train", {"-np", "2"}), HasSubstr("mpirun -np N"));
    EXPECT_THAT(error_of("train", {"-v"}), HasSubstr("hetseq --version"));
}

TEST(CommandWordsTest, OwnNumbersAreWholeAndInTheirRange) {
    const auto shards = [](const std::string& text) {
        const CommandWords words =
            parse("prepare", {"images", "a", "--output", "x", "--shards", text});
        return words.read(prepare_images_options()).shards;
    };

    EXPECT_THROW(shards("3x"), BadConfig);
    EXPECT_THROW(shards("0"), BadConfig);
    EXPECT_THROW(shards("100000"), BadConfig);
    EXPECT_EQ(shards("7"), 7);
}

}  // namespace
}  // namespace hetseq
