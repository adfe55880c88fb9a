#include "hetseq/command_line/python_task.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

using Words = std::vector<std::string>;

std::string found_in(const Words& words) {
    return find_python_task(words).value_or(PythonTask{.text = "none"}).text;
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
    const auto task = find_python_task({"train", "--lr", "1", "my.py:Cnn", "--overwrite"});
    ASSERT_TRUE(task);
    EXPECT_EQ(task->text, "my.py:Cnn");
    EXPECT_EQ(task->word, 3);
    EXPECT_EQ(task->words, 1);
    EXPECT_EQ(find_python_task({"train", "--task-file", "my.py"})->words, 2);
    EXPECT_EQ(found_in({"train", "--task-file=my.py:A", "other.py"}), "my.py:A");
    EXPECT_EQ(found_in({"train", "--data", "my.py"}), "none");  // an option's value
    EXPECT_EQ(found_in({"my.py"}), "none");                     // no command
    EXPECT_EQ(found_in({"train", "--task-file"}), "");
    EXPECT_EQ(found_in({}), "none");
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
        const auto task = find_python_task({"evaluate", word});
        ASSERT_TRUE(task) << word;
        EXPECT_EQ(task->text, "a b/my.py:Cnn");
        EXPECT_EQ(task->words, 0);
        EXPECT_EQ(task->configuration, configuration);
    }
    EXPECT_EQ(found_in({"train", write("other.cfg", "task-file =\nlr = 1\n")}), "none");
    EXPECT_EQ(found_in({"train", write("other.txt", "task-file = my.py\n")}), "none");
    EXPECT_EQ(found_in({"train", run + "/missing.cfg"}), "none");
}

TEST(PythonTaskTest, WhatNeedsNoModelNeedsNoPython) {
    EXPECT_TRUE(names_python_task({"train", "--task-file", "my.py"}));
    EXPECT_TRUE(names_python_task({"checkpoint", "export", "--task-file", "my.py"}));
    EXPECT_FALSE(names_python_task({"report", "--task-file", "my.py"}));
    EXPECT_FALSE(names_python_task({"checkpoint", "list", "--task-file", "my.py"}));
}

}  // namespace
}  // namespace hetseq
