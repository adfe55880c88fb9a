#include "hetseq/tools/checkpoint_command.hpp"

#include <cstdio>
#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/tools/checkpoint_report.hpp"
#include "hetseq/tools/tool_table.hpp"

namespace hetseq {

namespace {

using Count = CommandArgument::Count;

struct ListOptions {
    std::int64_t last = 0;  // only the newest so many; 0: all
    bool json = false;
};

struct VerifyOptions {
    std::int64_t last = 0;
};

Option<std::int64_t> last_option() {
    return whole_number_option(
        "last", "0", "take only the newest N; 0: all", 0, std::numeric_limits<std::int64_t>::max());
}

OptionsOf<ListOptions> list_options() {
    return OptionsOf<ListOptions>()
        .add(&ListOptions::last, last_option())
        .add(&ListOptions::json, json_option());
}

OptionsOf<VerifyOptions> verify_options() {
    return OptionsOf<VerifyOptions>().add(&VerifyOptions::last, last_option());
}

void say(const std::string& text) {
    std::fputs(text.c_str(), stdout);
}

int list(const CommandWords& words) {
    const ListOptions options = words.read(list_options());
    say(list_checkpoints(newest_checkpoints(words.arguments.front(), options.last), options.json));
    return 0;
}

int verify(const CommandWords& words) {
    int damaged = 0;
    say(verify_checkpoints(
        newest_checkpoints(words.arguments.front(), words.read(verify_options()).last), damaged));
    return damaged > 0 ? static_cast<int>(ExitCode::bad_data) : 0;
}

int inspect(const CommandWords& words) {
    say(inspect_checkpoint(checkpoints_of(words.arguments.front()).front()));
    return 0;
}

CommandForm export_form() {
    return {
        .word = "export",
        .help = "write a model as a folder that transformers loads",
        .arguments = {{"RUN",
                       Count::one,
                       "a run's folder, or one checkpoint; or a folder that transformers saved"},
                      {"DIR", Count::one, "the folder to write"}},
        .own_options = export_options().table()};
}

}  // namespace

Option<std::string> checkpoint_option() {
    return text_option(
        "checkpoint",
        "NAME|FILE",
        "",
        "parameters: best, last, update:N, average:N (of the last N) or a safetensors "
        "file; empty: the best, or the model");
}

OptionsOf<AverageOptions> average_options() {
    return OptionsOf<AverageOptions>()
        .add(&AverageOptions::output,
             text_option("output", "FILE", "", "the safetensors file to write").required())
        .add(&AverageOptions::last, last_option())
        .add(&AverageOptions::overwrites,
             switch_option("overwrite", "replace the file where it exists"));
}

OptionsOf<ExportFormat> export_options() {
    return OptionsOf<ExportFormat>()
        .add(&ExportFormat::format,
             choice_option("format",
                           {"hf"},
                           "hf",
                           "hf: config.json, model.safetensors, vocab.txt and "
                           "tokenizer_config.json, as Hugging Face's transformers reads them")
                 .shown_as("FORMAT"))
        .add(&ExportFormat::checkpoint, checkpoint_option())
        .add(&ExportFormat::overwrites,
             switch_option("overwrite", "replace the model in the folder"));
}

CommandDescription checkpoint_description() {
    const CommandArgument run{"RUN", Count::one, "a run's folder, or one checkpoint"};
    return {"checkpoint",
            summary_of("checkpoint"),
            {{.word = "list",
              .help = "show update, epoch, size and validation loss of each",
              .arguments = {run},
              .own_options = list_options().table()},
             {.word = "verify",
              .help = "read every byte and compare the checksums",
              .arguments = {run},
              .own_options = verify_options().table()},
             {.word = "inspect",
              .help = "show progress, options and tensors of the newest",
              .arguments = {run}},
             {.word = "average",
              .help = "write the mean of the checkpoints' parameters",
              .arguments = {run},
              .own_options = average_options().table()},
             export_form()}};
}

std::vector<std::filesystem::path> first_of(std::vector<std::filesystem::path> checkpoints,
                                            std::int64_t last) {
    if (last > 0 && last < std::ssize(checkpoints))
        checkpoints.resize(static_cast<std::size_t>(last));
    return checkpoints;
}

std::vector<std::filesystem::path> newest_checkpoints(const std::string& run, std::int64_t last) {
    return first_of(checkpoints_of(run), last);
}

bool needs_no_tensors(const std::string& form) {
    return form == "list" || form == "verify" || form == "inspect";
}

int look_at_checkpoints(const CommandWords& words) {
    if (words.form == "list")
        return list(words);
    return words.form == "verify" ? verify(words) : inspect(words);
}

}  // namespace hetseq
