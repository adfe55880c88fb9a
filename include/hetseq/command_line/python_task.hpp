#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// True if the words of a command line, a command first, name a task in Python: FILE.py or
/// FILE.py:CLASS, --task-file, or a configuration or run that has the option task-file. False for
/// commands that need no model.
bool names_python_task(const std::vector<std::string>& words);

/// Goes on as `python3 -m hetseq WORDS...` (HETSEQ_PYTHON names another interpreter). Returns only
/// where that cannot be started: prints why, and gives the exit code.
int continue_in_python(const std::vector<std::string>& words);

}  // namespace hetseq
