#include "hetseq/tools/tool_table.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/tools/bleu_command.hpp"
#include "hetseq/tools/new_command.hpp"
#include "hetseq/tools/report_command.hpp"
#include "hetseq/tools/tokenize_command.hpp"

#include "hetseq/version.hpp"

namespace hetseq {

namespace {

using Count = CommandArgument::Count;

CommandDescription new_task() {
    return {"new",
            summary_of("new"),
            {{.word = "",
              .help = "",
              .arguments = {{"FILE", Count::one, "the file to write, such as my_task.py"}},
              .own_options = template_options().table()}}};
}

CommandDescription report() {
    return {"report",
            summary_of("report"),
            {{.word = "",
              .help = "",
              .arguments = {{"RUN", Count::many, "folders of runs"}},
              .own_options = report_options().table()}}};
}

CommandDescription bleu() {
    return {"bleu",
            summary_of("bleu"),
            {{.word = "",
              .help = "",
              .arguments =
                  {{"REFERENCE", Count::many, "files of reference translations, a segment a line"}},
              .own_options = scoring_options().table()}}};
}

CommandDescription tokenize() {
    return {"tokenize",
            summary_of("tokenize"),
            {{.word = "", .help = "", .own_options = tokenize_options().table()}}};
}

}  // namespace

const std::vector<Tool>& tool_table() {
    static const std::vector<Tool> table{{new_task(), new_command},
                                         {report(), report_command},
                                         {bleu(), bleu_command},
                                         {tokenize(), tokenize_command}};
    return table;
}

const Tool* find_tool(const std::string& name) {
    for (const Tool& tool : tool_table())
        if (tool.description.name == name)
            return &tool;
    return nullptr;
}

const std::vector<CommandSummary>& command_summaries() {
    static const std::vector<CommandSummary> summaries{
        {"train", "train a model on all ranks; with FILE.py:CLASS, a task in Python"},
        {"evaluate", "compute the losses and metrics of a model on data"},
        {"predict",
         "write what a model says of data to an HDF5 file, or of text to standard output"},
        {"translate", "translate standard input, a sentence a line, to standard output"},
        {"check", "read all data and report what is wrong"},
        {"checkpoint", "look at a run's checkpoints, average their models, or export one"},
        {"prepare", "convert data to HDF5 shards, or train a vocabulary"},
        {"bench",
         "measure reading, updates or reductions, or bound an update on a GPU; prints JSON"},
        {"plan", "predict the step time of a job on a described cluster"},
        {"new", "write a task in Python that runs as it is, to be changed"},
        {"report", "draw one or several runs as one HTML file"},
        {"bleu", "score translations with BLEU or chrF2, equal to sacreBLEU"},
        {"tokenize", "turn lines of standard input into ids of BERT's pieces"},
        {"info", "show versions and features of this build"},
        {"document", "print the man page, a shell's completion or the page of all options"}};
    return summaries;
}

const std::string& summary_of(const std::string& command) {
    for (const CommandSummary& summary : command_summaries())
        if (summary.name == command)
            return summary.help;
    throw InternalError("no command is named " + command);
}

std::string program_usage() {
    std::string text = "hetseq " + std::string(version::number) +
                       ": data-parallel training on unlike GPUs, one rank per device.\n\n"
                       "  mpirun -np N hetseq train CONFIG.cfg [--OPTION VALUE ...]\n\nCommands:\n";
    std::vector<std::vector<std::string>> rows;
    for (const CommandSummary& command : command_summaries())
        rows.push_back({"  " + command.name, command.help});
    return text + format_table(rows) +
           "\nhetseq COMMAND --help tells more; hetseq --version (-V, version) prints the version.\n";
}

std::string version_line() {
    return std::string("hetseq ") + version::number + " (" + version::revision + ")";
}

bool is_help(const std::string& word) {
    return word == "--help" || word == "-h" || word == "help";
}

bool is_version(const std::string& word) {
    return word == "--version" || word == "-V" || word == "version";
}

bool asks_for_help(const std::vector<std::string>& words) {
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
        return word == "--help" || word == "-h";
    });
}

}  // namespace hetseq
