#include "hetseq/session/options/options.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "hetseq/util/error.hpp"
#include "hetseq/util/name_list.hpp"
#include "hetseq/util/option_value.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/options/absolute_path.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/ranks/rank_options.hpp"

namespace hetseq {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_prefix = "file:";  // of a balance

// Files, folders and globs separated by commas. A name that exists is taken as it is, and is
// escaped so that it is read again when it exists no more.
std::string absolute_names(const std::string& list) {
    const std::string here = escaped_name((fs::current_path() / "").string());
    std::string paths;
    for (const std::string& name : names_in_spec(list)) {
        std::error_code unknown;
        const std::string path = fs::exists(name, unknown) ? escaped_name(name) : name;
        const bool stays = path.front() == '/' || may_name_split(name);
        paths += (paths.empty() ? "" : ",") + (stays ? path : here + path);
    }
    return paths;
}

std::string absolute_cache(const std::string& folder) {
    return folder == "none" ? folder : absolute_path(folder);
}

std::string absolute_balance(const std::string& balance) {
    return balance.starts_with(file_prefix)
               ? std::string(file_prefix) + absolute_path(balance.substr(file_prefix.size()))
               : balance;
}

Balance balance_of(const std::string& text) {
    if (text.starts_with(file_prefix) && text.size() > file_prefix.size())
        return {"file", text.substr(file_prefix.size())};
    if (text != "auto" && text != "declared" && text != "equal")
        option_value::reject(text, "one of auto, declared, equal, file:PATH");
    return {text};
}

Option<Balance> balance_option(const std::string& help) {
    return {{"balance", "NAME", "auto", help, {"auto", "declared", "equal", "file:"}}, balance_of};
}

Option<std::set<int>> signals_option(const std::string& name,
                                     const std::string& default_value,
                                     const std::string& help) {
    return {{name, "LIST", default_value, help}, parse_signals};
}

Option<std::optional<double>> save_minutes_option(const std::string& help) {
    const std::string automatic = "auto";
    const auto read = [automatic](const std::string& text) -> std::optional<double> {
        if (text == automatic)
            return std::nullopt;
        try {
            return option_value::number(text, 0, std::numeric_limits<double>::max());
        } catch (const BadConfig&) {
            option_value::reject(text, "auto or a number of minutes, 0 or more");
        }
    };
    return {{"save-minutes", "N|auto", automatic, help, {automatic}}, read};
}

// clang-format off

void add_what_is_trained(OptionsOf<Options>& options) {
    options.heading("What is trained")
        .add(&Options::task, text_option("task", "NAME", "",
             "what is trained; chooses the parts and defaults below that you do not give").fixed_with(FixedWith::run))
        .add(&Options::model, text_option("model", "NAME", "",
             "network; by default the task's").fixed_with(FixedWith::run))
        .add(&Options::parts, part_options())
        .add(&Options::dataset, text_option("dataset", "NAME", "",
             "layout of the data files; by default the task's").fixed_with(FixedWith::position))
        .add(&Options::batching, text_option("batching", "NAME", "",
             "how rows become micro-batches; by default the task's").fixed_with(FixedWith::position))
        .add(&Options::precision, precision_option(
             "what a rank computes in, a word or a list (v100=fp16,a100=bf16,p100=fp32); auto: what its device does best"))
        .add(&Options::recompute, recompute_option(
             "layers that backward computes again, to save memory: N, all, none or a list (v100=all,a100=none); auto: where memory lacks (docs/memory.md)"))
        .add(&Options::shard, choice_option("shard", {"none", "optimizer"}, "none",
             "what is cut over the ranks, to save memory: nothing, or the optimizer's state"))
        .add(&Options::shard_by, shard_by_option(
             "parts of what is cut: memory (what a rank has left), even, or a list (v100=1,a100=5); see docs/memory.md"))
        .add(&Options::virtual_workers, text_option("virtual-workers", "none|auto|LIST", "none",
             "pipelines of ranks, 0+1+2 or several, 0+1,2+3; auto: the fastest layout; none: replicas (docs/virtual-workers.md)"))
        .add(&Options::stage_units, text_option("stage-units", "auto|LIST", "auto",
             "units of the model in each stage, 3+4+2, or of several workers, 3+4+2,5+4; auto: as measured (docs/virtual-workers.md)"))
        .add(&Options::seed, seed_option(
             "seed of initialisation, order and dropout").fixed_with(FixedWith::position));
}

void add_data(OptionsOf<Options>& options) {
    options.heading("Data")
        .add(&Options::data, text_option("data", "PATH", "",
             "data files: a file, a folder, a glob, or several of these separated by commas").repeated_as(absolute_names))
        .add(&Options::valid_data, text_option("valid-data", "PATH", "",
             "validation data, named like --data").repeated_as(absolute_names))
        .add(&Options::corpus, corpus_options())
        .add(&Options::cache_mb, number_by_rank_option("cache-mb", "512",
             "memory on each host for the blocks of one corpus [MiB]"));
}

void add_batch(OptionsOf<Options>& options) {
    options.heading("Batch and balance")
        .add(&Options::max_sentences, number_by_rank_option("max-sentences", "",
             "largest micro-batch of a rank [samples], N or a list (v100=64,p100=16); 0: no work; empty: 32, or what --max-tokens holds"))
        .add(&Options::max_tokens, number_by_rank_option("max-tokens", "4096",
             "the same where samples have unequal lengths [tokens with padding]"))
        .add(&Options::batch_size, whole_number_option("batch-size", "0",
             "size of the global batch [samples]; 0: the sum of the capacities times --update-freq").fixed_with(FixedWith::position))
        .add(&Options::batch_tokens, whole_number_option("batch-tokens", "0",
             "the same where samples have unequal lengths [target tokens]; 0: 0.9 times the sum of --max-tokens times --update-freq").fixed_with(FixedWith::position))
        .add(&Options::norm_group, whole_number_option("norm-group", "32",
             "samples that batch normalisation, or a loss over groups, looks at together", 1).fixed_with(FixedWith::position))
        .add(&Options::max_length, whole_number_option("max-length", "0",
             "longest row that a sample may have [tokens]; 0: the smallest --max-tokens").fixed_with(FixedWith::position))
        .add(&Options::update_freq, whole_number_option("update-freq", "1",
             "micro-batches per rank in each update, where --batch-size is not given", 1))
        .add(&Options::balance, balance_option(
             "how a batch is divided among ranks: auto (by measured speed), declared (by capacity), equal, or file:PATH (as RUN/allocations.json says)").repeated_as(absolute_balance))
        .add(&Options::cache_dir, text_option("cache-dir", "DIR", "",
             "folder that keeps measured speeds, and shards of Python's datasets; none: keep none; empty: hetseq in the user's cache folder").of_rank().repeated_as(absolute_cache));
}

void add_length(OptionsOf<Options>& options) {
    options.heading("Optimization")
        .add(&Options::trainer, trainer_options())
        .add(&Options::max_update, whole_number_option("max-update", "0",
             "updates to run; 0: --max-epoch decides"))
        .add(&Options::max_epoch, whole_number_option("max-epoch", "0",
             "epochs to run; 0: --max-update decides"));
}

void add_checkpoints(OptionsOf<Options>& options) {
    options.heading("Checkpoints and stopping")
        .add(&Options::resume, choice_option("resume", {"auto", "must", "never"}, "auto",
             "auto: continue the run in --save-dir, or start one; must: fail without one; never: fail with one").of_command())
        .add(&Options::restore_file, text_option("restore-file", "PATH", "",
             "start from this checkpoint, or from the newest of this run, where --save-dir holds none").of_command())
        .add(&Options::reset_optimizer, switch_option("reset-optimizer",
             "do not take the optimizer's state from --restore-file").of_command())
        .add(&Options::reset_lr_scheduler, switch_option("reset-lr-scheduler",
             "do not take the place in the learning rate's schedule from --restore-file").of_command())
        .add(&Options::reset_position, switch_option("reset-position",
             "do not take the place in the data from --restore-file").of_command())
        .add(&Options::save_minutes, save_minutes_option(
             "minutes between checkpoints; auto: as often as costs least; 0: do not save by the clock"))
        .add(&Options::keep_last, whole_number_option("keep-last", "3",
             "number of newest checkpoints to keep, besides the best one; 0: keep all"))
        .add(&Options::time_limit_s, duration_option("time-limit",
             "time limit of this job, [D-]HH:MM:SS from its start; the run saves and stops before it").of_command())
        .add(&Options::stop_signals, signals_option("stop-signals", "USR1,USR2,XCPU,TERM,INT",
             "signals at which the run saves and stops (INT is Ctrl-C); none: no signal"))
        .add(&Options::checkpoint_signals, signals_option("checkpoint-signals", "none",
             "signals at which the run saves and goes on; none: no signal"))
        .add(&Options::stop_exit_code, whole_number_option("stop-exit-code", "75",
             "exit code of a run that was stopped and can be continued", 0, 255))
        .add(&Options::stall_timeout, number_option("stall-timeout", "300",
             "seconds that a rank may be silent, or slower than the slowest so far, before the job ends; 0: any").shown_as("S"))
        .add(&Options::drop_below, number_option("drop-below", "0",
             "leave out devices that an earlier start found slower than this part of the speed of like ones; 0: none", 0, 1));
}

void add_running(OptionsOf<Options>& options) {
    options.heading("Running")
        .add(&Options::device, device_option(
             "device of a rank: auto (a GPU that no other rank uses, else the CPU), cpu or cuda"))
        .add(&Options::threads, number_by_rank_option("threads", "0",
             "threads of a rank; 0: as many as the cores it may use"))
        .add(&Options::bucket_mb, number_option("bucket-mb", "8",
             "gradients that are reduced at once [MiB], at most half of all where backward goes on meanwhile", 0.001, 4096))
        .add(&Options::reduce_precision, choice_option("reduce-precision", {"fp32", "bf16"}, "fp32",
             "type in which gradients go from rank to rank; bf16: half the bytes, with rounding (docs/precision.md)"))
        .add(&Options::join_timeout, number_option("join-timeout", "300",
             "seconds within which NCCL must start on the GPUs of all ranks; otherwise the job ends", 1, 86400).shown_as("S"))
        .add(&Options::log_interval, whole_number_option("log-interval", "100",
             "updates between log lines", 1))
        .add(&Options::save_dir, text_option("save-dir", "DIR", "",
             "folder for everything that the run writes; empty: nothing is written").of_command())
        .add(&Options::overwrite, switch_option("overwrite",
             "start anew where --save-dir holds a run, and remove its files").of_command())
        .add(&Options::dry_run, switch_option("dry-run",
             "check everything, try a few updates without keeping them, and say what the run would do").of_command())
        .add(&Options::json, json_option());
}

// clang-format on

OptionsOf<Options> all_options() {
    OptionsOf<Options> options;
    for (const auto add :
         {add_what_is_trained, add_data, add_batch, add_length, add_checkpoints, add_running})
        add(options);
    return options;
}

// In the order of the help.
constexpr std::array headings{"What is trained",
                              "Data",
                              "Batch and balance",
                              "Optimization",
                              "Checkpoints and stopping",
                              "Running"};

OptionTable by_heading(OptionTable table) {
    const auto place = [](const OptionSpec& spec) {
        return std::find(headings.begin(), headings.end(), spec.group);
    };
    std::stable_sort(table.begin(), table.end(), [&](const OptionSpec& a, const OptionSpec& b) {
        return place(a) < place(b);
    });
    return table;
}

// The text of an option that a part declared, which the part reads.
void read_own(const OptionSpec& spec, const OptionValues& values, PartOptions& parts) {
    const auto found = values.find(spec.name);
    const std::string& text = found != values.end() ? found->second : spec.default_value;
    read_value_of(spec, [&] { spec.check(text); });
    parts.own[spec.name] = text;
}

}  // namespace

const OptionsOf<Options>& run_options() {
    static const OptionsOf<Options> options = all_options();
    return options;
}

const Options& any_options() {
    static const Options options;
    return options;
}

const OptionTable& option_table() {
    static const OptionTable table = by_heading(run_options().table());
    return table;
}

Options typed_options(const OptionValues& values, const OptionTable& table) {
    for (const OptionSpec& spec : table)
        if (const auto given = values.find(spec.name); given != values.end())
            read_value_of(spec, [&] { check_repeatable(given->second); });
    Options options = run_options().read(values);
    for (const OptionSpec& spec : table)
        if (!spec.owners.empty())
            read_own(spec, values, options.parts);
    options.parts.data = options.data;
    options.parts.valid_data = options.valid_data;
    options.parts.seed = options.seed;
    options.parts.cache_dir = options.cache_dir;
    return options;
}

const std::string& required_data(const Options& options) {
    if (options.data.empty())
        throw BadConfig("no data were given", "--data", "give a file, a folder or a glob");
    return options.data;
}

}  // namespace hetseq
