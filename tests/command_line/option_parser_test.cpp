#include "hetseq/command_line/option_parser.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/session/options/merged_values.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

template <class Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

class ConfigFile {
public:
    explicit ConfigFile(const std::string& text)
        : path_{std::filesystem::temp_directory_path() /
                ("hetseq_options_" + std::to_string(::getpid()) + ".cfg")} {
        std::ofstream(path_) << text;
    }
    ~ConfigFile() { std::filesystem::remove(path_); }
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

TEST(ConfigFileTest, RefusesALineThatHoldsAPlaceholderOfTheLibrary) {
    const ConfigFile config("lr = 3\n3%invalid_line%\n");

    EXPECT_THAT(error_of([&] { parse_config_file(config.path(), option_table()); }),
                HasSubstr("cannot read the line '3%invalid_line%'"));
}

TEST(ConfigFileTest, ReadsOptions) {
    const ConfigFile good("# comment\ntask = mnist\nlr = 0.5\n");

    EXPECT_EQ(parse_config_file(good.path(), option_table()).at("lr"), "0.5");
}

TEST(ConfigFileTest, TakesFilesOfWindowsEditors) {
    const ConfigFile file("\xEF\xBB\xBFtask = mnist\r\nlr = 0.5\r\n");

    EXPECT_EQ(parse_config_file(file.path(), option_table()).at("task"), "mnist");
    EXPECT_EQ(parse_config_file(file.path(), option_table()).at("lr"), "0.5");
}

TEST(ConfigFileTest, NamesOtherEncodingsAndLineEnds) {
    const ConfigFile utf16(std::string("\xFF\xFEl\0r\0", 6));
    EXPECT_THAT(error_of([&] { parse_config_file(utf16.path(), option_table()); }),
                HasSubstr("is text in UTF-16"));
    const ConfigFile returns("# one\ntask = mnist\rlr = 0.5\r");
    EXPECT_THAT(error_of([&] { parse_config_file(returns.path(), option_table()); }),
                HasSubstr(", line 2 holds a carriage return"));
}

TEST(ConfigFileTest, NamesTheFileAndTheNearestOption) {
    const ConfigFile bad("task = mnist\nmax-updates = 3\n");

    EXPECT_THAT(error_of([&] { parse_config_file(bad.path(), option_table()); }),
                testing::AllOf(HasSubstr(bad.path()),
                               HasSubstr("unknown option 'max-updates'"),
                               HasSubstr("did you mean --max-update?")));
    EXPECT_THAT(error_of([] { parse_config_file("/nowhere/a.cfg", option_table()); }),
                HasSubstr("/nowhere/a.cfg"));
}

TEST(ConfigFileTest, SaysThatATaskOfAScriptNeedsItsFile) {
    const ConfigFile config("task = python\ndata-workers = 2\n");

    EXPECT_THAT(error_of([&] { parse_config_file(config.path(), option_table()); }),
                testing::AllOf(HasSubstr("a task in Python that a script made"),
                               HasSubstr("--task-file FILE.py:NAME")));
}

TEST(ConfigFileTest, SaysThatASectionIsNone) {
    const ConfigFile config("# MNIST\n[train]\nlr = 0.5\n");

    EXPECT_THAT(error_of([&] { parse_config_file(config.path(), option_table()); }),
                HasSubstr("line 2: '[train]' begins a section"));
}

TEST(ConfigFileTest, SaysThatAFolderIsNoFile) {
    const std::string folder = std::filesystem::temp_directory_path().string();

    EXPECT_THAT(error_of([&] { parse_config_file(folder, option_table()); }),
                HasSubstr(folder + " is a folder"));
}

TEST(ConfigFileTest, WarnsOfAnOptionWithTwoValues) {
    const ConfigFile config("lr = 0.5\nseed = 2\nlr = 0.25\nseed = 2\n");
    testing::internal::CaptureStderr();

    const OptionValues values = parse_config_file(config.path(), option_table());

    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(values.at("lr"), "0.25");
    EXPECT_THAT(log,
                HasSubstr("--lr is given more than once (0.5, then 0.25 in " + config.path() +
                          "): 0.25 is taken"));
    EXPECT_THAT(log, testing::Not(HasSubstr("seed")));
}

TEST(GivenOptionsTest, SaysWhatTheCommandLineReplaces) {
    const ConfigFile config("lr = 0.5\nseed = 2\nmax-epoch = 3\n");
    const CommandWords words{.form = "",
                             .arguments = {config.path()},
                             .options = {{"lr", "0.1"}, {"seed", "2"}, {"max-update", "9"}},
                             .own = {}};
    testing::internal::CaptureStderr();

    given_options(words, option_table());

    EXPECT_THAT(
        testing::internal::GetCapturedStderr(),
        HasSubstr("the command line replaces options of " + config.path() + ": lr 0.1 (0.5)\n"));
}

TEST(EffectiveValuesTest, CommandLineWinsOverFileOverTaskOverTable) {
    const Parts parts = builtin_parts();

    const OptionValues values =
        merged_values({{{"lr", "3"}}, {{"task", "mnist"}, {"lr", "2"}, {"seed", "5"}}}, parts);

    EXPECT_EQ(values.at("lr"), "3");
    EXPECT_EQ(values.at("seed"), "5");
    EXPECT_EQ(values.at("optimizer"), "adadelta");
    EXPECT_EQ(values.at("update-freq"), "1");
}

TEST(EffectiveValuesTest, FileWinsOverTheTasksDefaults) {
    const Parts parts = builtin_parts();

    const OptionValues values = merged_values(
        {{{"task", "bert"}}, {{"optimizer", "sgd"}, {"model", "mnist-cnn"}, {"clip-norm", "0"}}},
        parts);

    EXPECT_EQ(values.at("optimizer"), "sgd");
    EXPECT_EQ(values.at("model"), "mnist-cnn");
    EXPECT_EQ(values.at("clip-norm"), "0");
    EXPECT_EQ(values.at("weight-decay"), "0.01");  // the task's
    EXPECT_EQ(values.at("dataset"), "bert-pretraining");
}

TEST(EffectiveValuesTest, TheCommandLinesTaskWinsOverTheFiles) {
    const Parts parts = builtin_parts();

    const OptionValues values = merged_values({{{"task", "bert"}}, {{"task", "mnist"}}}, parts);

    EXPECT_EQ(values.at("model"), "bert");
    EXPECT_EQ(values.at("optimizer"), "adamw");
}

TEST(EffectiveValuesTest, NamesTheNearestTask) {
    const Parts parts = builtin_parts();

    EXPECT_THAT(error_of([&] {
                    merged_values({{{"task", "mnits"}}, {}}, parts);
                }),
                HasSubstr("Did you mean mnist?"));
    EXPECT_THAT(error_of([&] { merged_values({}, parts); }), HasSubstr("--task"));
}

TEST(TypedOptionsTest, NamesTheOptionOfABadValue) {
    EXPECT_THAT(error_of([] {
                    typed_options({{"lr", "fast"}});
                }),
                testing::AllOf(HasSubstr("--lr"), HasSubstr("fast")));
    EXPECT_THAT(error_of([] { typed_options({{"dropout", "1.5"}}); }), HasSubstr("--dropout"));
    EXPECT_THAT(error_of([] { typed_options({{"precision", "fp8"}}); }), HasSubstr("fp32, fp64"));
    EXPECT_THAT(error_of([] { typed_options({{"log-interval", "0"}}); }), HasSubstr("from 1 to"));
}

// config.cfg drops blanks around a value: the run could not be repeated from it.
TEST(TypedOptionsTest, RefusesBlanksAroundAValue) {
    for (const char* value : {" a.h5", "a.h5 ", "a.h5\t", "a.h5\r", " "})
        EXPECT_THAT(error_of([&] { typed_options({{"data", value}}); }), HasSubstr("blank"));
    EXPECT_EQ(typed_options({{"data", "a b.h5"}}).data, "a b.h5");
}

TEST(ConfigTextTest, ReadsBackAsItWas) {
    const Parts parts = builtin_parts();
    const OptionValues values = merged_values(
        {{{"task", "bert"}, {"lr", "0.25"}, {"max-sentences", "0=3,1=1"}}, {}}, parts);
    const ConfigFile written(config_text(values, option_table()));

    const OptionValues again =
        merged_values({{}, parse_config_file(written.path(), option_table())}, parts);

    EXPECT_EQ(again, values);
}

}  // namespace
}  // namespace hetseq
