#include "python_task.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/app/failure.hpp"

namespace hetseq {

namespace {

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
    if (path.extension() != ".cfg")
        return false;
    static const std::regex form(R"(\s*task-file\s*=\s*\S.*)");
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (std::regex_match(line, form))
            return true;
    return false;
}

}  // namespace

bool names_python_task(const std::vector<std::string>& words) {
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
    std::vector<std::string> all{named != nullptr ? named : "python3", "-m", "hetseq"};
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
