#include "hetseq/command_line/python_task.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/plain_text.hpp"
#include "hetseq/util/process/exit_code.hpp"

namespace hetseq {

namespace {

// As `python3 -m hetseq`, with an error of ours where Python lacks the package.
constexpr const char* start_of_module = R"(
import importlib.util, runpy, sys
if importlib.util.find_spec("hetseq") is None:
    print(f"hetseq error: {sys.executable} has no package hetseq (a task in Python needs it); install it "
          "(docs/python.md), or name another Python in HETSEQ_PYTHON", file=sys.stderr)
    sys.exit(78)
sys.argv[0] = "hetseq"
runpy.run_module("hetseq", run_name="__main__", alter_sys=True)
)";

// They read what a run left and need no model.
bool needs_no_task(const std::vector<std::string>& words) {
    return words.size() > 1 &&
           (words[0] == "report" || (words[0] == "checkpoint" && words[1] == "list"));
}

bool is_python_name(std::string_view name) {
    const auto may_stand = [](char c) {
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9');
    };
    return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
           std::all_of(name.begin(), name.end(), may_stand);
}

// FILE.py or FILE.py:CLASS
bool is_task_file(std::string_view word) {
    const std::size_t colon = word.rfind(':');
    if (colon != std::string_view::npos && is_python_name(word.substr(colon + 1)))
        word = word.substr(0, colon);
    return word.size() > 3 && word.ends_with(".py");
}

// "task-file = FILE.py", with any blanks.
bool names_task_file(std::string_view line) {
    constexpr std::string_view name = "task-file", blanks = " \t\v\f\r";
    const auto skip_blanks = [&] {
        line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    };
    skip_blanks();
    if (!line.starts_with(name))
        return false;
    line.remove_prefix(name.size());
    skip_blanks();
    if (!line.starts_with('='))
        return false;
    line.remove_prefix(1);
    skip_blanks();
    return !line.empty();
}

// A configuration, or a run's folder with one.
bool configures_python_task(const std::string& word) {
    std::filesystem::path path = word;
    std::error_code unreadable;
    if (std::filesystem::is_directory(path, unreadable))
        path /= "config.cfg";
    if (path.extension() != ".cfg" || !std::filesystem::is_regular_file(path, unreadable))
        return false;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (names_task_file(without_line_end(without_byte_order_mark(line))))
            return true;
    return false;
}

}  // namespace

bool names_python_task(const std::vector<std::string>& words) {
    if (needs_no_task(words))
        return false;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const bool may_be_value = words[i - 1].rfind("-", 0) == 0;
        if (words[i] == "--task-file" || words[i].rfind("--task-file=", 0) == 0 ||
            (!may_be_value && is_task_file(words[i])) || configures_python_task(words[i]))
            return true;
    }
    return false;
}

int continue_in_python(const std::vector<std::string>& words) {
    const char* const named = std::getenv("HETSEQ_PYTHON");
    std::vector<std::string> all{named != nullptr ? named : "python3", "-c", start_of_module};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& word : all)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    const BadConfig error(
        "cannot start " + all.front() + ", which a task in Python needs",
        std::strerror(errno),
        "load Python with torch and the package hetseq, or name it in HETSEQ_PYTHON");
    print_error(error);
    return exit_code_of(error);
}

}  // namespace hetseq
