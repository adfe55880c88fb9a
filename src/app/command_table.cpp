#include "hetseq/app/command_table.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_names.hpp"
#include "hetseq/tools/checkpoint_command.hpp"
#include "hetseq/tools/tool_table.hpp"
#include "hetseq/session/options/options.hpp"

#include "app/commands/command_options.hpp"
#include "app/commands/prepare/prepare_description.hpp"

namespace hetseq {

namespace {

using Count = CommandArgument::Count;

CommandArgument configuration() {
    return {"CONFIG.cfg", Count::optional, "a file of options; the command line wins"};
}

// Options of runs that a command uses.
OptionTable options_of_runs(const std::vector<std::string>& names) {
    OptionTable table;
    for (const std::string& name : names) {
        const OptionSpec* const spec = find_option(option_table(), name);
        if (spec == nullptr)
            throw InternalError("no option is named " + name);
        table.push_back(*spec);
    }
    return table;
}

OptionTable all_options_but(const std::vector<std::string>& others) {
    OptionTable table = option_table();
    std::erase_if(table, [&](const OptionSpec& spec) {
        return std::find(others.begin(), others.end(), spec.name) != others.end();
    });
    return table;
}

CommandDescription train() {
    return {"train",
            summary_of("train"),
            {{.word = "", .help = "", .arguments = {configuration()}, .options = option_table()}}};
}

CommandDescription evaluate() {
    return {"evaluate",
            summary_of("evaluate"),
            {{.word = "",
              .help = "",
              .arguments = {{"RUN",
                             Count::optional,
                             "a run's folder, whose options, model and validation data are used; "
                             "without it: --task, --init-model and --data"}},
              .own_options = evaluate_options().table(),
              .options = options_of_runs(
                  {"task",       "model",         "model-config", "init-model",   "dataset",
                   "batching",   "precision",     "data",         "block-length", "cache-mb",
                   "io",         "max-sentences", "max-tokens",   "max-length",   "skip-too-long",
                   "batch-size", "cache-dir",     "device",       "threads",      "json"})}}};
}

CommandDescription predict() {
    return {
        "predict",
        summary_of("predict"),
        {{.word = "",
          .help = "",
          .arguments = {{"RUN", Count::one, "a run's folder, whose options and model are used"}},
          .own_options = predict_options().table(),
          .options =
              options_of_runs({"data", "cache-dir", "precision", "device", "threads", "json"})}}};
}

CommandDescription translate() {
    return {"translate",
            summary_of("translate"),
            {{.word = "",
              .help = "",
              .arguments = {{"RUN",
                             Count::one,
                             "a folder with config.json, model.safetensors and the vocabularies, "
                             "such as a run's"}},
              .own_options = translate_options().table(),
              .options = options_of_runs({"precision", "device", "threads"})}}};
}

CommandDescription check() {
    return {"check",
            summary_of("check"),
            {{.word = "",
              .help = "",
              .arguments = {configuration()},
              .options = options_of_runs(
                  {"task", "model-config", "init-model", "dataset", "data", "json"})}}};
}

// All but `others`: a benchmark writes nothing and stops by itself.
OptionTable step_options(std::vector<std::string> others) {
    const std::set<std::string> kept{"check-interval", "drift", "best-by", "patience"};
    for (const OptionSpec& option : option_table())
        if (option.group == "Checkpoints and stopping" && kept.count(option.name) == 0)
            others.push_back(option.name);
    others.insert(others.end(), {"save-dir", "overwrite", "dry-run"});
    return all_options_but(others);
}

CommandDescription bench() {
    return {"bench",
            summary_of("bench"),
            {{.word = "data",
              .help = "measure samples per second, read from files and from the cache",
              .arguments = {configuration()},
              .options = options_of_runs({"task",
                                          "model-config",
                                          "init-model",
                                          "dataset",
                                          "data",
                                          "data-weights",
                                          "shuffle-blocks",
                                          "block-length",
                                          "cache-mb",
                                          "io",
                                          "max-sentences",
                                          "max-tokens",
                                          "batch-size",
                                          "batch-tokens",
                                          "max-length",
                                          "skip-too-long",
                                          "json"})},
             {.word = "step",
              .help = "train for --max-update updates and leave nothing behind",
              .arguments = {configuration()},
              .options = step_options({})},
             {.word = "reduce",
              .help = "measure all-reduce, next to MPI's own",
              .options = options_of_runs({"device", "json"})},
             {.word = "roofline",
              .help = "count an update's operators on the CPU, and compute the least time that a "
                      "GPU needs for them; no GPU is measured",
              .arguments = {configuration()},
              .own_options = roofline_options().table(),
              .options = step_options({"device"})}}};
}

CommandDescription plan() {
    return {
        "plan",
        summary_of("plan"),
        {{.word = "",
          .help = "",
          .arguments = {{"CLUSTER.cfg", Count::one, "description of the hosts, devices and links"}},
          .own_options = plan_options().table()}}};
}

CommandDescription info() {
    return {"info",
            summary_of("info"),
            {{.word = "", .help = "", .own_options = info_options().table()}}};
}

CommandDescription document() {
    return {
        "document",
        summary_of("document"),
        {{.word = "man", .help = "the man page hetseq(1), for man -l"},
         {.word = "bash", .help = "completion of hetseq in bash: source <(hetseq document bash)"},
         {.word = "zsh", .help = "the same in zsh: source <(hetseq document zsh)"},
         {.word = "fish", .help = "the same in fish: hetseq document fish | source"},
         {.word = "options", .help = "all options, as Markdown"}}};
}

// What is no command: "configuration"; empty where that cannot be told.
std::string kind_of(const std::string& word) {
    std::error_code unknown;
    if (word.ends_with(".cfg"))
        return "a configuration";
    if (word.ends_with(".py") || word.find(".py:") != std::string::npos)
        return "a task in Python";
    return std::filesystem::is_directory(word, unknown) ? "a folder" : "";
}

[[noreturn]] void refuse_command(const std::string& word, const std::vector<std::string>& known) {
    if (word.front() == '-') {
        const std::string advice = meant_option(word, {});
        throw BadUsage("the option " + word + " stands where the command belongs",
                       "",
                       advice.empty() ? "hetseq COMMAND " + word + " ..." : advice);
    }
    const std::string kind = kind_of(word);
    if (kind.empty())
        throw BadUsage("unknown command '" + word + "'", "", suggestion(word, known));
    throw BadUsage(word + " stands where the command belongs",
                   "it is " + kind,
                   "hetseq " + std::string(kind == "a folder" ? "evaluate " : "train ") + word);
}

}  // namespace

namespace {

std::vector<CommandEntry> make_command_table() {
    std::vector<CommandEntry> table{
        {train(), NeedsMpi::always, train_command, true},
        {evaluate(), NeedsMpi::always, evaluate_command},
        {predict(), NeedsMpi::launched, predict_command},
        {translate(), NeedsMpi::launched, translate_command},
        {check(), NeedsMpi::launched, check_command},
        {checkpoint_description(), NeedsMpi::never, checkpoint_command},
        {prepare_description(), NeedsMpi::launched, prepare_command},
        {bench(), NeedsMpi::always, bench_command},
        {plan(), NeedsMpi::launched, plan_command},
    };
    for (const Tool& tool : tool_table())
        table.push_back({tool.description, NeedsMpi::never, [run = tool.run](const auto& context) {
                             return run(context.words);
                         }});
    table.push_back({info(), NeedsMpi::never, info_command});
    table.push_back({document(), NeedsMpi::never, document_command});
    return table;
}

}  // namespace

const std::vector<CommandEntry>& command_table() {
    static const std::vector<CommandEntry> table = make_command_table();
    return table;
}

const CommandEntry& find_command(const std::string& name) {
    std::vector<std::string> names;
    for (const CommandEntry& command : command_table()) {
        if (command.description.name == name)
            return command;
        names.push_back(command.description.name);
    }
    refuse_command(name, names);
}

}  // namespace hetseq
