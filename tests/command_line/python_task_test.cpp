#include "hetseq/command_line/python_task.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/text.hpp"
#include "hetseq/session/options/options.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

using Words = std::vector<std::string>;

// "A B|other words", the tasks and what is left.
std::string found_in(const Words& words) {
    const PythonTasks found = find_python_tasks(words);
    std::string text = found.lacks_value ? "?" : "";
    for (const PythonTask& task : found.tasks)
        text += (text.empty() ? "" : " ") + task.text;
    return text + "|" + join(found.other_words, " ");
}

TEST(PythonTaskTest, AFileMayNameAClass) {
    EXPECT_EQ(task_file_of("my_task.py")->path, "my_task.py");
    EXPECT_EQ(task_file_of("my_task.py")->name, "");
    EXPECT_EQ(task_file_of("a:b/my.py:Cnn_2")->path, "a:b/my.py");
    EXPECT_EQ(task_file_of("a:b/my.py:Cnn_2")->name, "Cnn_2");
    for (const char* other : {"", ".py", "my.pyc", "my.py:", "my.py:2a", "my.py:a-b", "Cnn"})
        EXPECT_FALSE(task_file_of(other)) << other;
}

TEST(PythonTaskTest, WordsNameIt) {
    EXPECT_EQ(found_in({"train", "--lr", "1", "my.py:Cnn", "--json"}),
              "my.py:Cnn|train --lr 1 --json");
    EXPECT_EQ(found_in({"train", "--dry-run", "my.py:Cnn"}), "my.py:Cnn|train --dry-run");
    EXPECT_EQ(found_in({"train", "--task-file", "my.py"}), "my.py|train");
    EXPECT_EQ(found_in({"train", "--data", "my.py"}), "|train --data my.py");  // an option's value
    EXPECT_EQ(found_in({"my.py"}), "|my.py");                                  // no command
    EXPECT_EQ(found_in({"train", "--task-file"}), "?|train");
    EXPECT_EQ(found_in({"train", "--task-file="}), "?|train");
    EXPECT_EQ(found_in({}), "|");
}

// What finds tasks has a list of switches of its own, since it does not load LibTorch.
TEST(PythonTaskTest, AWordBehindAnOptionIsItsValueUnlessItIsASwitch) {
    for (const OptionSpec& option : option_table()) {
        const std::string name = "--" + option.name;
        EXPECT_EQ(found_in({"train", name, "my.py"}),
                  option.is_switch() ? "my.py|train " + name : "|train " + name + " my.py");
    }
}

TEST(PythonTaskTest, SeveralAreAllFound) {
    EXPECT_EQ(found_in({"train", "--task-file=my.py:A", "other.py"}), "my.py:A other.py|train");
    EXPECT_EQ(found_in({"train", "a.py", "x", "b.py"}), "a.py b.py|train x");
}

TEST(PythonTaskTest, ConfigurationsAndRunsNameIt) {
    const test::TemporaryFolder folder;
    const auto write = [&](const std::string& name, const std::string& text) {
        std::ofstream(folder.path() / name) << text;
        return (folder.path() / name).string();
    };
    const std::string run = folder.path().string();
    const std::string configuration =
        write("config.cfg",
              "\xEF\xBB\xBFlr = 1\r\n# task-file = no.py\r\n"
              " task-file\t= first.py \r\n"
              "task-file = a b/my.py:Cnn # why\r\ntask-files = x.py\n");
    for (const std::string& word : {run, configuration}) {
        const PythonTasks found = find_python_tasks({"evaluate", word});
        ASSERT_EQ(found.tasks.size(), 1) << word;
        EXPECT_EQ(found.tasks[0].text, "a b/my.py:Cnn");
        EXPECT_EQ(found.tasks[0].configuration, configuration);
        EXPECT_EQ(found.other_words, (Words{"evaluate", word}));
    }
    EXPECT_EQ(found_in({"train", configuration, "--task-file", "mine.py"}),
              "mine.py|train " + configuration);
    for (const std::string& other : {write("other.cfg", "task-file =\nlr = 1\n"),
                                     write("other.txt", "task-file = my.py\n"),
                                     run + "/missing.cfg"})
        EXPECT_EQ(found_in({"train", other}), "|train " + other);
}

TEST(PythonTaskTest, WhatNeedsNoModelNeedsNoPython) {
    EXPECT_TRUE(names_python_task({"train", "--task-file", "my.py"}));
    EXPECT_TRUE(names_python_task({"checkpoint", "export", "--task-file", "my.py"}));
    EXPECT_FALSE(names_python_task({"report", "--task-file", "my.py"}));
    EXPECT_FALSE(names_python_task({"plan", "two.cfg", "--from", "my.py"}));
    for (const char* form : {"list", "verify", "inspect", "average"})
        EXPECT_FALSE(names_python_task({"checkpoint", form, "--task-file", "my.py"})) << form;
}

}  // namespace
}  // namespace hetseq
