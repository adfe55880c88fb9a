#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hetseq {

/// FILE.py or FILE.py:CLASS, divided.
struct TaskFile {
    std::string path;
    std::string name;  // empty: the file's only task
};

/// Empty where the text does not name a task's file.
std::optional<TaskFile> task_file_of(const std::string& text);

/// A task in Python that a command line names, and where.
struct PythonTask {
    std::string text;           // FILE.py:CLASS; empty: --task-file without a value
    std::size_t word = 0;       // of the command line, the first that is about it
    std::size_t words = 0;      // so many; 0: a configuration names it
    std::string configuration;  // that one's file
};

/// The task that the words of a command line, a command first, name: by --task-file, by a word
/// FILE.py or FILE.py:CLASS, or in a configuration or a run's folder that has the option task-file.
/// Empty where there is none.
std::optional<PythonTask> find_python_task(const std::vector<std::string>& words);

/// True if there is one, and the command needs a model.
bool names_python_task(const std::vector<std::string>& words);

/// Goes on as `python3 -m hetseq WORDS...` (HETSEQ_PYTHON names another interpreter). Returns only
/// where that cannot be started: prints why, and gives the exit code.
int continue_in_python(const std::vector<std::string>& words);

}  // namespace hetseq
