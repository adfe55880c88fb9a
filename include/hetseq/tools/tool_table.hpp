#pragma once

#include <string>
#include <vector>

#include "hetseq/command_line/command_description.hpp"
#include "hetseq/command_line/command_words.hpp"

namespace hetseq {

/// A command that needs neither tensors nor MPI.
struct Tool {
    CommandDescription description;
    int (*run)(const CommandWords&);  // returns the exit code
};

/// new, report, bleu, tokenize
const std::vector<Tool>& tool_table();

/// Null if there is none of this name.
const Tool* find_tool(const std::string& name);

/// A command's name and what it does, a line of `hetseq --help`.
struct CommandSummary {
    std::string name;
    std::string help;
};

/// All commands of hetseq, tools among them.
const std::vector<CommandSummary>& command_summaries();
/// What the command does. Throws InternalError if there is none of this name.
const std::string& summary_of(const std::string& command);

/// `hetseq --help`
std::string program_usage();
/// "hetseq 0.2.0 (6725e5c)": `hetseq --version`
std::string version_line();

bool is_help(const std::string& word);
bool is_version(const std::string& word);
/// True if the words that follow a command ask for its help.
bool asks_for_help(const std::vector<std::string>& words);

}  // namespace hetseq
