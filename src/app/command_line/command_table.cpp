#include "hetseq/app/command_line/command_table.hpp"

#include <filesystem>
#include <iterator>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

#include "prepare_description.hpp"

#include "hetseq/app/command_line/option_names.hpp"

namespace hetseq {

namespace {

using Count = CommandArgument::Count;
using Need = CommandOption::Need;

CommandArgument configuration() {
    return {"CONFIG.cfg", Count::optional, "a file of options; the command line wins"};
}

CommandDescription train() {
    return {"train",
            "train a model on all ranks; with FILE.py:CLASS, a task in Python",
            {{.word = "", .help = "", .arguments = {configuration()}, .options = options_but({})}}};
}

CommandOption checkpoint_option() {
    return {"checkpoint",
            "NAME|FILE",
            "",
            "parameters to take: best, last, update:N, average:N (the mean of the last N "
            "checkpoints) or a safetensors file; without it RUN/best.safetensors, or "
            "RUN/model.safetensors where there is no such file"};
}

CommandDescription evaluate() {
    return {"evaluate",
            "compute the losses and metrics of a model on data",
            {{.word = "",
              .help = "",
              .arguments = {{"RUN",
                             Count::optional,
                             "a run's folder; its options, model and validation data are "
                             "used unless the options below say otherwise; without RUN, "
                             "--task, --init-model and --data are needed"}},
              .own_options = {checkpoint_option()},
              .options = {"task",
                          "model",
                          "model-config",
                          "init-model",
                          "dataset",
                          "batching",
                          "precision",
                          "data",
                          "block-length",
                          "cache-mb",
                          "io",
                          "max-sentences",
                          "max-tokens",
                          "max-length",
                          "skip-too-long",
                          "batch-size",
                          "device",
                          "threads",
                          "json"}}}};
}

CommandDescription predict() {
    return {
        "predict",
        "write what a model says of data to an HDF5 file, or of text to standard output",
        {{.word = "",
          .help = "",
          .arguments = {{"RUN", Count::one, "a run's folder, whose options and model are used"}},
          .own_options =
              {{"output",
                "FILE",
                "",
                "the HDF5 file to write; without it and --data, each line of standard input is "
                "answered by a line of labels"},
               checkpoint_option(),
               {"batch-size", "N", "64", "samples or lines computed together, on every rank"},
               {"overwrite", "", "", "replace the file where it exists"}},
          .options = {"data", "precision", "device", "threads", "json"}}}};
}

CommandDescription translate() {
    return {
        "translate",
        "translate standard input, a sentence a line, to standard output",
        {{.word = "",
          .help = "",
          .arguments =
              {{"RUN",
                Count::one,
                "a folder with config.json, model.safetensors and the vocabularies, such as "
                "a run's"}},
          .own_options =
              {checkpoint_option(),
               {"beam",
                "N",
                "5",
                "translations of a sentence that are followed at once; 1: greedy"},
               {"nbest", "N", "1", "translations written for each line, best first"},
               {"length-penalty", "X", "1", "a score is divided by the length to this power"},
               {"max-len-a", "X", "0", "a translation has at most A n + B tokens, n the source's"},
               {"max-len-b", "N", "200", "B of --max-len-a"},
               {"min-len", "N", "1", "a translation has at least N tokens"},
               {"unk-penalty", "X", "0", "taken from the score of each unknown token"},
               {"print-scores", "", "", "write each translation's score and a tab before it"},
               {"batch-sentences", "N", "64", "sentences translated together at most"},
               {"batch-source-tokens", "N", "4096", "source tokens translated together at most"}},
          .options = {"precision", "device", "threads"}}}};
}

CommandDescription check() {
    return {"check",
            "read all data and report what is wrong",
            {{.word = "",
              .help = "",
              .arguments = {configuration()},
              .options = {"task", "model-config", "init-model", "dataset", "data", "json"}}}};
}

CommandForm checkpoint_export_form() {
    return {
        .word = "export",
        .help = "write a model as a folder that transformers loads",
        .arguments = {{"RUN",
                       Count::one,
                       "a run's folder, or one checkpoint; or a folder that transformers saved"},
                      {"DIR", Count::one, "the folder to write"}},
        .own_options = {
            {"format",
             "FORMAT",
             "hf",
             "hf: config.json, model.safetensors, vocab.txt and tokenizer_config.json, as Hugging "
             "Face's transformers reads them"},
            checkpoint_option(),
            {"overwrite", "", "", "replace the model in the folder"}}};
}

CommandDescription checkpoint() {
    const CommandArgument run{"RUN", Count::one, "a run's folder, or one checkpoint"};
    const CommandOption last{"last", "N", "0", "take only the newest N; 0: all"};
    return {
        "checkpoint",
        "look at a run's checkpoints, average their models, or export one",
        {{.word = "list",
          .help = "show update, epoch, size and validation loss of each",
          .arguments = {run},
          .own_options = {last},
          .options = {"json"}},
         {.word = "verify",
          .help = "read every byte and compare the checksums",
          .arguments = {run},
          .own_options = {last}},
         {.word = "inspect",
          .help = "show progress, options and tensors of the newest",
          .arguments = {run}},
         {.word = "average",
          .help = "write the mean of the checkpoints' parameters",
          .arguments = {run},
          .own_options = {{"output", "FILE", "", "the safetensors file to write", Need::required},
                          last}},
         checkpoint_export_form()}};
}

// All but `others`: a benchmark writes nothing and stops by itself.
std::vector<std::string> step_options(std::vector<std::string> others) {
    const char* const of_runs[] = {"resume",
                                   "restore-file",
                                   "reset-optimizer",
                                   "reset-lr-scheduler",
                                   "reset-position",
                                   "save-interval",
                                   "save-interval-updates",
                                   "save-minutes",
                                   "keep-last",
                                   "time-limit",
                                   "stop-after",
                                   "stop-signals",
                                   "checkpoint-signals",
                                   "stop-exit-code",
                                   "stall-timeout",
                                   "save-dir",
                                   "overwrite",
                                   "dry-run"};
    others.insert(others.end(), std::begin(of_runs), std::end(of_runs));
    return options_but(others);
}

CommandDescription bench() {
    return {"bench",
            "measure reading, updates or reductions, or bound an update on a GPU; prints JSON",
            {{.word = "data",
              .help = "measure samples per second, read from files and from the cache",
              .arguments = {configuration()},
              .options = {"task",
                          "model-config",
                          "init-model",
                          "dataset",
                          "data",
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
                          "json"}},
             {.word = "step",
              .help = "train for --max-update updates and leave nothing behind",
              .arguments = {configuration()},
              .options = step_options({})},
             {.word = "reduce",
              .help = "measure all-reduce, next to MPI's own",
              .options = {"device", "json"}},
             {.word = "roofline",
              .help = "count an update's operators on the CPU, and compute the least time that a "
                      "GPU needs for them; no GPU is measured",
              .arguments = {configuration()},
              .own_options = {{"device",
                               "h100|a100|v100|p100",
                               "",
                               "the GPU; without it all of them, and no cost for a plan"}},
              .options = step_options({"device"})}}};
}

CommandDescription plan() {
    return {
        "plan",
        "predict the step time of a job on a described cluster",
        {{.word = "",
          .help = "",
          .arguments = {{"CLUSTER.cfg", Count::one, "description of the hosts, devices and links"}},
          .own_options =
              {{"from", "RUN[,RUN...]", "", "folders of runs whose measured speeds are used"}},
          .options = {"json"}}}};
}

CommandDescription report() {
    return {"report",
            "draw one or several runs as one HTML file",
            {{.word = "",
              .help = "",
              .arguments = {{"RUN", Count::many, "folders of runs"}},
              .own_options = {{"output", "FILE", "report.html", "the file to write"}}}}};
}

CommandDescription bleu() {
    return {"bleu",
            "score translations with BLEU or chrF2, equal to sacreBLEU",
            {{.word = "",
              .help = "",
              .arguments =
                  {{"REFERENCE", Count::many, "files of reference translations, a segment a line"}},
              .own_options =
                  {{"input", "FILE", "", "the translations; by default standard input"},
                   {"metrics", "LIST", "bleu", "bleu, chrf, or both with a comma between them"},
                   {"tokenize",
                    "13a|none|intl|char",
                    "13a",
                    "how BLEU divides segments into words; none: at blanks alone"},
                   {"lowercase", "", "", "compute BLEU without regard to case"},
                   {"smooth-method",
                    "exp|floor|add-k|none",
                    "exp",
                    "what BLEU counts an order of n-grams as that has no match"},
                   {"smooth-value",
                    "X",
                    "",
                    "the value for floor (0.1 without it) or add-k (1 without it)"},
                   {"chrf-word-order", "N", "0", "chrF also counts n-grams of N words; 2: chrF2++"},
                   {"chrf-lowercase", "", "", "compute chrF without regard to case"},
                   {"sentence-level", "", "", "score each segment, one a line"},
                   {"score-only", "", "", "print nothing but the score"},
                   {"width", "N", "1", "digits after the point of a score"}},
              .options = {"json"}}}};
}

CommandDescription tokenize() {
    return {
        "tokenize",
        "turn lines of standard input into ids of BERT's pieces",
        {{.word = "",
          .help = "",
          .own_options = {{"vocab", "FILE", "", "the vocabulary, a piece a line", Need::required},
                          cased_option(),
                          accents_option(),
                          {"keep-special",
                           "",
                           "",
                           "take [MASK], [CLS], [SEP], [PAD] and [UNK] in a line as pieces"},
                          {"max-word-characters",
                           "N",
                           "200",
                           "a longer word is [UNK]; Hugging Face's programs take 100"},
                          {"tokens", "", "", "print the pieces instead of their ids"}}}}};
}

CommandDescription info() {
    return {"info",
            "show versions and features of this build",
            {{.word = "", .help = "", .options = {"json"}}}};
}

CommandDescription document() {
    return {
        "document",
        "print the man page, the bash completion or the page of all options",
        {{.word = "man", .help = "the man page hetseq(1), for man -l"},
         {.word = "bash", .help = "completion of hetseq in bash: source <(hetseq document bash)"},
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

const std::vector<CommandEntry>& command_table() {
    static const std::vector<CommandEntry> table{
        {train(), NeedsMpi::always, train_command, true},
        {evaluate(), NeedsMpi::always, evaluate_command},
        {predict(), NeedsMpi::launched, predict_command},
        {translate(), NeedsMpi::launched, translate_command},
        {check(), NeedsMpi::launched, check_command},
        {checkpoint(), NeedsMpi::never, checkpoint_command},
        {prepare_description(), NeedsMpi::launched, prepare_command},
        {bench(), NeedsMpi::always, bench_command},
        {plan(), NeedsMpi::launched, plan_command},
        {report(), NeedsMpi::never, report_command},
        {bleu(), NeedsMpi::never, bleu_command},
        {tokenize(), NeedsMpi::never, tokenize_command},
        {info(), NeedsMpi::never, info_command},
        {document(), NeedsMpi::never, document_command},
    };
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
