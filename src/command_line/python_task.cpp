#include "hetseq/command_line/python_task.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/exit_code.hpp"
#include "hetseq/util/plain_text.hpp"

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

bool is_task_file(const std::string& word) {
    static const std::regex form(R"(.+\.py(:[A-Za-z_]\w*)?)");
    return std::regex_match(word, form);
}

// A configuration, or a run's folder with one.
bool configures_python_task(const std::string& word) {
    std::filesystem::path path = word;
    std::error_code unreadable;
    if (std::filesystem::is_directory(path, unreadable))
        path /= "config.cfg";
    if (path.extension() != ".cfg" || !std::filesystem::is_regular_file(path, unreadable))
        return false;
    static const std::regex form(R"(\s*task-file\s*=\s*\S.*)");
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (std::regex_match(std::string{without_line_end(without_byte_order_mark(line))}, form))
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
