#include "hetseq/command_line/python_task.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

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
    print(f"hetseq error: {sys.executable} has no package hetseq (a task in Python needs it): install it, "
          "or put lib/hetseq/python of hetseq's installation on PYTHONPATH (docs/building.md), or name another Python in "
          "HETSEQ_PYTHON", file=sys.stderr)
    sys.exit(78)
sys.argv[0] = "hetseq"
runpy.run_module("hetseq", run_name="__main__", alter_sys=True)
)";

// They read what a run left and need no model, or write a task's file.
bool needs_no_task(const std::vector<std::string>& words) {
    return words.size() > 1 && (words[0] == "new" || words[0] == "report" || words[0] == "plan" ||
                                (words[0] == "checkpoint" && words[1] != "export"));
}

bool is_python_name(std::string_view name) {
    const auto may_stand = [](char c) {
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9');
    };
    return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
           std::all_of(name.begin(), name.end(), may_stand);
}

constexpr std::string_view blanks = " \t\v\f\r";

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    const std::size_t last = text.find_last_not_of(blanks);
    return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// Those of a training that take no value. The tables that know all options need LibTorch.
constexpr std::string_view switches[] = {"--dry-run",
                                         "--json",
                                         "--overwrite",
                                         "--reset-lr-scheduler",
                                         "--reset-optimizer",
                                         "--reset-position",
                                         "--skip-too-long"};

// True if the word behind `word` may be its value.
bool awaits_value(const std::string& word) {
    return word.starts_with('-') && word.find('=') == std::string::npos &&
           std::find(std::begin(switches), std::end(switches), word) == std::end(switches);
}

// The value of a line "task-file = FILE.py:CLASS  # why"; empty for another line.
std::string task_file_in(std::string_view line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || trimmed(line.substr(0, equals)) != "task-file")
        return {};
    const std::string_view value = line.substr(equals + 1);
    return std::string(trimmed(value.substr(0, value.find(" #"))));
}

// The file of a configuration, or of a run's folder; empty for another word.
std::filesystem::path configuration_at(const std::string& word) {
    std::filesystem::path path = word;
    std::error_code unreadable;
    if (std::filesystem::is_directory(path, unreadable))
        path /= "config.cfg";
    const bool is_there =
        path.extension() == ".cfg" && std::filesystem::is_regular_file(path, unreadable);
    return is_there ? path : std::filesystem::path{};
}

// Of several lines, the last one counts.
std::string configured_task_file(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string found;
    for (std::string line; std::getline(file, line);)
        if (std::string value = task_file_in(without_line_end(without_byte_order_mark(line)));
            !value.empty())
            found = std::move(value);
    return found;
}

}  // namespace

std::optional<TaskFile> task_file_of(const std::string& text) {
    TaskFile file{text, {}};
    const std::size_t colon = text.rfind(':');
    if (colon != std::string::npos && is_python_name(std::string_view(text).substr(colon + 1)))
        file = {text.substr(0, colon), text.substr(colon + 1)};
    if (file.path.size() <= 3 || !file.path.ends_with(".py"))
        return std::nullopt;
    return file;
}

PythonTasks find_python_tasks(const std::vector<std::string>& words) {
    const std::string option = "--task-file";
    PythonTasks found;
    const auto name = [&](const std::string& text) {
        if (text.empty())
            found.lacks_value = true;
        else
            found.tasks.push_back({text, {}});
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == option)
            name(++i < words.size() ? words[i] : "");
        else if (word.starts_with(option + "="))
            name(word.substr(option.size() + 1));
        else if (i > 0 && !awaits_value(words[i - 1]) && task_file_of(word))
            name(word);
        else
            found.other_words.push_back(word);
    }
    if (!found.tasks.empty() || found.lacks_value)
        return found;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::filesystem::path configuration = configuration_at(words[i]);
        if (std::string text = configuration.empty() ? "" : configured_task_file(configuration);
            !text.empty()) {
            found.tasks.push_back({std::move(text), configuration.string()});
            break;
        }
    }
    return found;
}

bool names_python_task(const std::vector<std::string>& words) {
    if (needs_no_task(words))
        return false;
    const PythonTasks found = find_python_tasks(words);
    return !found.tasks.empty() || found.lacks_value;
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
