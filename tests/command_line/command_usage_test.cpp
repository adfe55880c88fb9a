#include "hetseq/command_line/command_usage.hpp"

#include <set>

#include <gtest/gtest.h>

#include "hetseq/options/option.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/app/command_table.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

TEST(CommandUsageTest, ShowsArgumentsOwnOptionsAndAFewOfTheTable) {
    const CommandDescription command{
        "draw",
        "",
        {{.word = "lines",
          .help = "",
          .arguments = {{"RUN", CommandArgument::Count::one, ""},
                        {"IDX", CommandArgument::Count::many, ""}},
          .own_options = {text_option("output", "DIR", "", "").required(),
                          whole_number_option("shards", "1", ""),
                          switch_option("quiet", "")},
          .options = {json_option()}}}};

    EXPECT_THAT(usage_lines(command),
                ElementsAre("hetseq draw lines RUN IDX... --output DIR [--shards N] [--quiet] "
                            "[--json]"));
}

TEST(CommandUsageTest, ManyOptionsOfTheTableAreNotListed) {
    const CommandDescription command{
        "measure",
        "",
        {{.word = "",
          .help = "",
          .arguments = {{"CONFIG.cfg", CommandArgument::Count::optional, ""}},
          .options = {text_option("data", "PATH", "", ""),
                      text_option("task", "NAME", "", ""),
                      whole_number_option("threads", "0", ""),
                      json_option()}}}};

    EXPECT_THAT(usage_lines(command),
                ElementsAre("hetseq measure [CONFIG.cfg] [--OPTION VALUE ...]"));
}

TEST(CommandUsageTest, NameOfAValueSaysWhetherItIsAPath) {
    EXPECT_EQ(value_kind("PATH"), ValueKind::file);
    EXPECT_EQ(value_kind("NAME|FILE"), ValueKind::file);
    EXPECT_EQ(value_kind("CONFIG.cfg"), ValueKind::configuration);
    EXPECT_EQ(value_kind("RUN"), ValueKind::folder);
    EXPECT_EQ(value_kind("RUN[,RUN...]"), ValueKind::folder);
    EXPECT_EQ(value_kind("N|LIST"), ValueKind::any);
}

TEST(CommandTableTest, EachOptionACommandUsesIsInTheTable) {
    std::set<std::string> known;
    for (const OptionSpec& spec : option_table())
        known.insert(spec.name);

    for (const CommandEntry& command : command_table())
        for (const CommandForm& form : command.description.forms)
            for (const OptionSpec& option : form.options)
                EXPECT_TRUE(known.contains(option.name))
                    << command.description.name << ": " << option.name;
}

TEST(CommandTableTest, NoFormHasTwoOptionsOfOneName) {
    for (const CommandEntry& command : command_table())
        for (const CommandForm& form : command.description.forms) {
            std::set<std::string> names;
            for (const OptionSpec& option : form.own_options)
                EXPECT_TRUE(names.insert(option.name).second)
                    << command.description.name << ": " << option.name;
            for (const OptionSpec& option : form.options)
                EXPECT_TRUE(names.insert(option.name).second)
                    << command.description.name << ": " << option.name;
        }
}

TEST(CommandTableTest, FormsOfOneCommandHaveWords) {
    for (const CommandEntry& command : command_table()) {
        const std::size_t forms = command.description.forms.size();
        const std::size_t words = command.description.words().size();
        EXPECT_TRUE(words == forms || (forms == 1 && words == 0)) << command.description.name;
    }
}

TEST(CommandTableTest, TrainUsesAllOptions) {
    EXPECT_EQ(find_command("train").description.forms.front().options.size(),
              option_table().size());
}

}  // namespace
}  // namespace hetseq
