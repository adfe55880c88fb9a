#include "hetseq/command_line/command_help.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "hetseq/util/text.hpp"
#include "hetseq/command_line/command_examples.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/app/command_table.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string help_of(const std::string& command, const std::string& form = "") {
    return command_help(find_command(command).description, form, option_table(builtin_parts()));
}

TEST(CommandHelpTest, OfTrainNamesEveryOption) {
    const std::string help = help_of("train");

    for (const OptionSpec& spec : option_table())
        EXPECT_THAT(help, HasSubstr("\n  --" + spec.name + " "));
}

TEST(CommandHelpTest, ListsTheNamesOfPartsAtHandAUsersOwnToo) {
    Parts parts = builtin_parts();
    parts.models.add("my-model", [](const PartOptions&) { return std::shared_ptr<Model>(); });

    const std::string help =
        command_help(find_command("train").description, "", option_table(parts));

    EXPECT_THAT(
        help,
        HasSubstr(
            "mnist-cnn, bert, bert-sequence-classifier, bert-token-classifier, transformer, my-model"));
    for (const auto& names : {parts.datasets.names(),
                              parts.batchings.names(),
                              parts.optimizers.names(),
                              parts.schedules.names()})
        for (const std::string& name : names)
            EXPECT_THAT(help, HasSubstr(name));
}

TEST(CommandHelpTest, EachFormHasAnExample) {
    for (const CommandEntry& command : command_table())
        for (const CommandForm& form : command.description.forms) {
            const std::string& name = command.description.name;
            const CommandExample* const example = find_example(name, form.word);
            ASSERT_NE(example, nullptr) << name << " " << form.word;
            EXPECT_THAT(help_of(name, form.word), HasSubstr(example->line));
            EXPECT_THAT(example->line, HasSubstr("hetseq " + name));
            EXPECT_TRUE(std::filesystem::exists(example->page)) << example->page;
        }
}

// Of words; a longer one points to a page that tells the rest.
TEST(CommandHelpTest, AHelpTextIsShort) {
    constexpr std::size_t most = 20;
    const auto words = [](const std::string& text) { return split(text, ' ').size(); };
    for (const CommandEntry& command : command_table())
        for (const CommandForm& form : command.description.forms) {
            for (const OptionTable* table : {&form.own_options, &form.options})
                for (const OptionSpec& option : *table)
                    EXPECT_LE(words(option.help), most)
                        << command.description.name << " --" << option.name;
            for (const CommandArgument& argument : form.arguments)
                EXPECT_LE(words(argument.help), most)
                    << command.description.name << " " << argument.name;
        }
}

TEST(CommandHelpTest, ShowsOnlyOptionsThatTheCommandUses) {
    EXPECT_THAT(help_of("check"), AllOf(HasSubstr("--data PATH"), Not(HasSubstr("--lr "))));
    EXPECT_THAT(help_of("evaluate"),
                AllOf(HasSubstr("--max-sentences"), Not(HasSubstr("--optimizer"))));
    EXPECT_THAT(help_of("bench", "reduce"), AllOf(HasSubstr("--device"), Not(HasSubstr("--data"))));
    EXPECT_THAT(help_of("bench", "step"), AllOf(HasSubstr("--lr "), Not(HasSubstr("--save-dir"))));
}

TEST(CommandHelpTest, OfAllFormsSaysWhichTakeAnOption) {
    EXPECT_THAT(help_of("bench"), HasSubstr("whose samples are mixed (data, step, roofline) [8]"));
    EXPECT_THAT(help_of("checkpoint"),
                AllOf(HasSubstr("hetseq checkpoint average RUN --output FILE [--last N]"),
                      HasSubstr("take only the newest N; 0: all (list, verify, average) [0]")));
}

TEST(CommandHelpTest, ExplainsEveryWord) {
    for (const CommandEntry& command : command_table()) {
        const std::string help = help_of(command.description.name);
        for (const CommandForm& form : command.description.forms) {
            for (const CommandArgument& argument : form.arguments) {
                EXPECT_FALSE(argument.help.empty());
                EXPECT_THAT(help, HasSubstr("\n  " + argument.name + " "));
            }
            for (const OptionSpec& option : form.own_options) {
                EXPECT_FALSE(option.help.empty());
                EXPECT_THAT(help, HasSubstr("\n  --" + option.name + " "));
            }
        }
    }
}

}  // namespace
}  // namespace hetseq
