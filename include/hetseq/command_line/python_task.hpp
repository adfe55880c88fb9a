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
    std::string text;           // FILE.py:CLASS
    std::string configuration;  // the file that names it; empty: the command line does
};

/// What the words of a command line, a command first, say of tasks in Python.
struct PythonTasks {
    /// By --task-file or a word FILE.py or FILE.py:CLASS, in the order of the words; otherwise by
    /// the first configuration or run's folder that has the option task-file.
    std::vector<PythonTask> tasks;
    std::vector<std::string> other_words;  // those that are not about them
    bool lacks_value = false;              // --task-file has none
};

PythonTasks find_python_tasks(const std::vector<std::string>& words);

/// True if there is one, and the command needs a model.
bool names_python_task(const std::vector<std::string>& words);

/// Goes on as `python3 -m hetseq WORDS...` (HETSEQ_PYTHON names another interpreter). Returns only
/// where that cannot be started: prints why, and gives the exit code.
int continue_in_python(const std::vector<std::string>& words);

}  // namespace hetseq
