#include "hetseq/tools/new_command.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"

#include "tools/task_templates.hpp"

namespace hetseq {

namespace {

constexpr std::string_view name_in_templates = "my_task.py";

// The name stands in command lines that the file shows.
bool is_plain(const std::string& name) {
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '.';
    });
}

void check(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    if (path.extension() != ".py" || !is_plain(name) || name.starts_with('-'))
        throw BadConfig("'" + path.string() + "' is no name for a task's file",
                        "it has letters, digits, '_' and '-', and ends in .py",
                        "give a name such as my_task.py");
    std::error_code unknown;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, unknown)))
        throw BadConfig(path.string() + " is there already",
                        "hetseq new writes over no file",
                        "give another name, or remove it");
}

// With `name` in the command lines.
std::string text_of(const std::string& kind, const std::string& name) {
    std::string text(kind == "language-model" ? language_model_template : classification_template);
    for (std::size_t at = 0; (at = text.find(name_in_templates, at)) != std::string::npos;) {
        text.replace(at, name_in_templates.size(), name);
        at += name.size();
    }
    return text;
}

}  // namespace

OptionsOf<TemplateOptions> template_options() {
    return OptionsOf<TemplateOptions>().add(&TemplateOptions::kind,
                                            choice_option("kind",
                                                          {"classification", "language-model"},
                                                          "classification",
                                                          "what the task learns"));
}

int new_command(const CommandWords& words) {
    const std::filesystem::path path = words.arguments.front();
    check(path);
    const std::string name = path.filename().string();
    write_atomically(path, text_of(words.read(template_options()).kind, name));
    std::printf("%s: run it by 'hetseq train %s', then change it; its first lines tell more\n",
                path.c_str(),
                path.c_str());
    return 0;
}

}  // namespace hetseq
