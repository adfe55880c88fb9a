#include "hetseq/session/options.hpp"

#include <cstring>
#include <utility>

#include "hetseq/util/error.hpp"

#include "option_setters.hpp"

namespace hetseq {

namespace {

using namespace option_setters;

#define HETSEQ_PLACE(member)         \
    [](Options & options) -> auto& { \
        return options.member;       \
    }

// An option takes three lines: name, type, default, scope and what fixes it; help; place.
// clang-format off

std::vector<OptionSpec> task_options() {
    return {
        {"task", "NAME", "", OptionScope::job, FixedWith::run,
         "what is trained; chooses the parts and defaults below that you do not give",
         text(HETSEQ_PLACE(task))},
        {"model", "NAME", "", OptionScope::job, FixedWith::run,
         "network; by default the task's",
         text(HETSEQ_PLACE(model))},
        {"model-config", "NAME|FILE", "", OptionScope::job, FixedWith::run,
         "size of bert (tiny, mini, small, base, large) or transformer (tiny, base, big), or a config.json",
         text(HETSEQ_PLACE(parts.model_config))},
        {"init-model", "PATH", "", OptionScope::job, FixedWith::nothing,
         "start from the parameters in PATH/model.safetensors, or in the file PATH; bert and transformer also take the config.json beside them",
         text(HETSEQ_PLACE(parts.init_model))},
        {"dataset", "NAME", "", OptionScope::job, FixedWith::position,
         "layout of the data files; by default the task's",
         text(HETSEQ_PLACE(dataset))},
        {"batching", "NAME", "", OptionScope::job, FixedWith::position,
         "how rows become micro-batches; by default the task's",
         text(HETSEQ_PLACE(batching))},
        {"dropout", "P", "", OptionScope::job, FixedWith::run,
         "dropout probability; by default the model's",
         probability(HETSEQ_PLACE(parts.dropout))},
        {"attention-dropout", "P", "", OptionScope::job, FixedWith::run,
         "dropout probability of attention weights; by default the model's",
         probability(HETSEQ_PLACE(parts.attention_dropout))},
        {"precision", "NAME", "fp32", OptionScope::job, FixedWith::run,
         "type of parameters and arithmetic: fp32 or fp64",
         choice(HETSEQ_PLACE(precision), {"fp32", "fp64"})},
        {"seed", "N", "1", OptionScope::job, FixedWith::position,
         "seed of initialisation, order and dropout",
         option_setters::seed(HETSEQ_PLACE(seed))},
    };
}

std::vector<OptionSpec> data_options() {
    return {
        {"data", "PATH", "", OptionScope::job, FixedWith::nothing,
         "data files: a file, a folder, a glob, or several of these separated by commas",
         text(HETSEQ_PLACE(data))},
        {"valid-data", "PATH", "", OptionScope::job, FixedWith::nothing,
         "validation data, named like --data",
         text(HETSEQ_PLACE(valid_data))},
        {"shuffle-blocks", "N", "8", OptionScope::job, FixedWith::position,
         "number of blocks whose samples are mixed",
         integer(HETSEQ_PLACE(corpus.shuffle_blocks), 1)},
        {"block-length", "N", "0", OptionScope::job, FixedWith::position,
         "samples in a block; 0: chosen from the data",
         integer(HETSEQ_PLACE(corpus.block_length))},
        {"cache-mb", "N|LIST", "512", OptionScope::rank, FixedWith::nothing,
         "memory on each host for the blocks of one corpus [MiB]",
         text(HETSEQ_PLACE(cache_mb))},
        {"io", "NAME", "collective", OptionScope::job, FixedWith::nothing,
         "how files are read: collective, independent or serial",
         set_io()},
    };
}

std::vector<OptionSpec> batch_options() {
    return {
        {"max-sentences", "N|LIST", "", OptionScope::rank, FixedWith::nothing,
         "largest micro-batch of a rank, and its declared capacity where samples are of one length [samples]: N, or a list by rank, host or device such as 0=64,1-3=16 or v100=64,p100=16; 0: no work; empty: 32, or as many samples of unequal length as --max-tokens holds",
         text(HETSEQ_PLACE(max_sentences))},
        {"max-tokens", "N|LIST", "4096", OptionScope::rank, FixedWith::nothing,
         "the same where samples have unequal lengths [tokens with padding: samples times the longest row]",
         text(HETSEQ_PLACE(max_tokens))},
        {"batch-size", "N", "0", OptionScope::job, FixedWith::position,
         "size of the global batch [samples]; 0: the sum of the capacities times --update-freq",
         integer(HETSEQ_PLACE(batch_size))},
        {"batch-tokens", "N", "0", OptionScope::job, FixedWith::position,
         "size of the global batch where samples have unequal lengths [target tokens without padding]; 0: 0.9 times the sum of --max-tokens times --update-freq",
         integer(HETSEQ_PLACE(batch_tokens))},
        {"max-length", "N", "0", OptionScope::job, FixedWith::position,
         "longest row that a sample may have [tokens]; 0: the smallest --max-tokens",
         integer(HETSEQ_PLACE(max_length))},
        {"skip-too-long", "", "false", OptionScope::job, FixedWith::position,
         "leave samples out that are longer than --max-length, and say how many; otherwise they are an error",
         flag(HETSEQ_PLACE(skip_too_long))},
        {"update-freq", "N", "1", OptionScope::job, FixedWith::nothing,
         "micro-batches per rank in each update, where --batch-size is not given",
         integer(HETSEQ_PLACE(update_freq), 1)},
        {"balance", "NAME", "auto", OptionScope::job, FixedWith::nothing,
         "how a batch is divided among ranks: auto (by measured speed, without CPUs that would slow GPUs down), declared (by capacity), equal, or file:PATH (as recorded in RUN/allocations.json)",
         set_balance()},
        {"cache-dir", "DIR", "", OptionScope::rank, FixedWith::nothing,
         "folder that keeps measured speeds for later runs; none: do not keep them; empty: hetseq in the user's cache folder",
         text(HETSEQ_PLACE(cache_dir))},
    };
}

std::vector<OptionSpec> optimization_options() {
    return {
        {"optimizer", "NAME", "adam", OptionScope::job, FixedWith::optimizer,
         "rule of the update",
         text(HETSEQ_PLACE(parts.optimizer.name))},
        {"lr", "X", "0.001", OptionScope::job, FixedWith::schedule,
         "learning rate; with a schedule, the highest one",
         number(HETSEQ_PLACE(parts.schedule.lr))},
        {"lr-scheduler", "NAME", "fixed", OptionScope::job, FixedWith::schedule,
         "schedule of the learning rate",
         text(HETSEQ_PLACE(parts.schedule.name))},
        {"warmup-updates", "N", "0", OptionScope::job, FixedWith::schedule,
         "length of the linear warm-up [updates]",
         integer(HETSEQ_PLACE(parts.schedule.warmup_updates))},
        {"warmup-init-lr", "X", "0", OptionScope::job, FixedWith::schedule,
         "learning rate at the start of warm-up",
         number(HETSEQ_PLACE(parts.schedule.warmup_init_lr))},
        {"total-num-update", "N", "0", OptionScope::job, FixedWith::schedule,
         "update at which decay ends; 0: the last one of the run",
         integer(HETSEQ_PLACE(parts.schedule.total_updates))},
        {"weight-decay", "X", "0", OptionScope::job, FixedWith::optimizer,
         "weight decay; biases and normalisations are left out",
         number(HETSEQ_PLACE(parts.optimizer.weight_decay))},
        {"clip-norm", "X", "0", OptionScope::job, FixedWith::optimizer,
         "largest 2-norm of the gradient; 0: no limit",
         number(HETSEQ_PLACE(clip_norm))},
        {"max-update", "N", "0", OptionScope::job, FixedWith::nothing,
         "updates to run; 0: --max-epoch decides",
         integer(HETSEQ_PLACE(max_update))},
        {"max-epoch", "N", "0", OptionScope::job, FixedWith::nothing,
         "epochs to run; 0: --max-update decides",
         integer(HETSEQ_PLACE(max_epoch))},
        {"max-skips", "N", "100", OptionScope::job, FixedWith::nothing,
         "give up after this many updates in a row whose loss is not finite",
         integer(HETSEQ_PLACE(max_skips), 1)},
    };
}

std::vector<OptionSpec> checkpoint_options() {
    return {
        {"resume", "NAME", "auto", OptionScope::command, FixedWith::nothing,
         "auto: continue the run in --save-dir, or start one; must: fail where there is none; never: fail where there is one",
         choice(HETSEQ_PLACE(resume), {"auto", "must", "never"})},
        {"restore-file", "PATH", "", OptionScope::command, FixedWith::nothing,
         "where --save-dir holds no checkpoint, start from this one, or from the newest of this run",
         text(HETSEQ_PLACE(restore_file))},
        {"reset-optimizer", "", "false", OptionScope::command, FixedWith::nothing,
         "do not take the optimizer's state from --restore-file",
         flag(HETSEQ_PLACE(reset_optimizer))},
        {"reset-lr-scheduler", "", "false", OptionScope::command, FixedWith::nothing,
         "do not take the place in the learning rate's schedule from --restore-file",
         flag(HETSEQ_PLACE(reset_lr_scheduler))},
        {"reset-position", "", "false", OptionScope::command, FixedWith::nothing,
         "do not take the place in the data from --restore-file",
         flag(HETSEQ_PLACE(reset_position))},
        {"save-interval", "N", "1", OptionScope::job, FixedWith::nothing,
         "epochs between checkpoints; 0: do not save by epochs",
         integer(HETSEQ_PLACE(save_interval))},
        {"save-interval-updates", "N", "0", OptionScope::job, FixedWith::nothing,
         "updates between checkpoints; 0: do not save by updates",
         integer(HETSEQ_PLACE(save_interval_updates))},
        {"save-minutes", "X", "30", OptionScope::job, FixedWith::nothing,
         "minutes between checkpoints; 0: do not save by the clock",
         number(HETSEQ_PLACE(save_minutes))},
        {"keep-last", "N", "3", OptionScope::job, FixedWith::nothing,
         "number of newest checkpoints to keep, besides the best one; 0: keep all",
         integer(HETSEQ_PLACE(keep_last))},
        {"time-limit", "TIME", "", OptionScope::command, FixedWith::nothing,
         "time limit of this job, [D-]HH:MM:SS from its start; the run saves and stops before it",
         duration(HETSEQ_PLACE(time_limit_s))},
        {"stop-after", "N", "0", OptionScope::command, FixedWith::nothing,
         "save and stop after N updates of this start; the run's length and schedule stay as they are, and the same command continues it; 0: never",
         integer(HETSEQ_PLACE(stop_after))},
        {"stop-signals", "LIST", "USR1,USR2,XCPU,TERM,INT", OptionScope::job, FixedWith::nothing,
         "signals at which the run saves and stops (INT is Ctrl-C); none: no signal",
         signals(HETSEQ_PLACE(stop_signals))},
        {"checkpoint-signals", "LIST", "none", OptionScope::job, FixedWith::nothing,
         "signals at which the run saves and goes on; none: no signal",
         signals(HETSEQ_PLACE(checkpoint_signals))},
        {"stop-exit-code", "N", "75", OptionScope::job, FixedWith::nothing,
         "exit code of a run that was stopped and can be continued",
         integer(HETSEQ_PLACE(stop_exit_code), 0, 255)},
        {"best-by", "NAME:min|max", "loss:min", OptionScope::job, FixedWith::nothing,
         "loss term or metric whose lowest or highest value marks the best validation; loss: the sum of the terms",
         best_by(HETSEQ_PLACE(best_by))},
        {"patience", "N", "0", OptionScope::job, FixedWith::nothing,
         "stop after N validations in a row without improvement (as --best-by measures it); 0: never",
         integer(HETSEQ_PLACE(patience))},
        {"stall-timeout", "S", "300", OptionScope::job, FixedWith::nothing,
         "end the job when a rank takes this many seconds longer than the slowest so far, or is not heard from for that long; 0: never",
         number(HETSEQ_PLACE(stall_timeout))},
        {"check-interval", "N", "1000", OptionScope::job, FixedWith::nothing,
         "updates between comparisons of the ranks' parameters; 0: never compare",
         integer(HETSEQ_PLACE(check_interval))},
        {"drift", "NAME", "warn", OptionScope::job, FixedWith::nothing,
         "what to do when the ranks' parameters differ by more than rounding: warn, sync (take rank 0's) or abort",
         choice(HETSEQ_PLACE(drift), {"warn", "sync", "abort"})},
    };
}

std::vector<OptionSpec> run_options() {
    return {
        {"device", "NAME|LIST", "auto", OptionScope::rank, FixedWith::nothing,
         "device of a rank: auto (a GPU that no other rank uses, else the CPU), cpu or cuda",
         set_device()},
        {"threads", "N|LIST", "0", OptionScope::rank, FixedWith::nothing,
         "threads of a rank; 0: as many as the cores it may use",
         text(HETSEQ_PLACE(threads))},
        {"bucket-mb", "X", "8", OptionScope::job, FixedWith::nothing,
         "size of the gradients that are reduced at once, at most half of all where backward can go on beside it [MiB]",
         number(HETSEQ_PLACE(bucket_mb), 0.001, 4096)},
        {"join-timeout", "S", "300", OptionScope::job, FixedWith::nothing,
         "end the job when NCCL has not started on the GPUs of all ranks after this many seconds",
         number(HETSEQ_PLACE(join_timeout), 1, 86400)},
        {"log-interval", "N", "100", OptionScope::job, FixedWith::nothing,
         "updates between log lines",
         integer(HETSEQ_PLACE(log_interval), 1)},
        {"valid-interval", "N", "0", OptionScope::job, FixedWith::nothing,
         "updates between validations; 0: validate after each epoch",
         integer(HETSEQ_PLACE(valid_interval))},
        {"save-dir", "DIR", "", OptionScope::command, FixedWith::nothing,
         "folder for everything that the run writes; empty: nothing is written",
         text(HETSEQ_PLACE(save_dir))},
        {"overwrite", "", "false", OptionScope::command, FixedWith::nothing,
         "start anew where --save-dir holds a run, and remove its files",
         flag(HETSEQ_PLACE(overwrite))},
        {"dry-run", "", "false", OptionScope::command, FixedWith::nothing,
         "check everything, try a few updates without keeping them, and say what the run would do",
         flag(HETSEQ_PLACE(dry_run))},
        {"json", "", "false", OptionScope::command, FixedWith::nothing,
         "print results as JSON",
         flag(HETSEQ_PLACE(json))},
    };
}

// clang-format on
#undef HETSEQ_PLACE

std::vector<OptionSpec> make_table() {
    const std::pair<const char*, std::vector<OptionSpec>> groups[] = {
        {"What is trained", task_options()},
        {"Data", data_options()},
        {"Batch and balance", batch_options()},
        {"Optimization", optimization_options()},
        {"Checkpoints and stopping", checkpoint_options()},
        {"Running", run_options()},
    };
    std::vector<OptionSpec> table;
    for (const auto& [group, options] : groups)
        for (OptionSpec spec : options) {
            spec.group = group;
            table.push_back(std::move(spec));
        }
    return table;
}

}  // namespace

const OptionTable& option_table() {
    static const OptionTable table = make_table();
    return table;
}

namespace {

void check_repeatable(const std::string& value) {
    constexpr const char* blanks = " \t\r\n\v\f";
    const bool has_outer_blanks =
        !value.empty() && (std::strchr(blanks, value.front()) != nullptr ||
                           std::strchr(blanks, value.back()) != nullptr);
    if (has_outer_blanks || value.find_first_of("#\r\n") != std::string::npos)
        throw BadConfig(
            "'" + value + "' holds a '#' or a line's end, or begins or ends with a blank",
            "config.cfg could not repeat it",
            "rename the file");
}

}  // namespace

Options typed_options(const OptionValues& values, const OptionTable& table) {
    Options options;
    for (const OptionSpec& spec : table) {
        const auto found = values.find(spec.name);
        const std::string& value = found != values.end() ? found->second : spec.default_value;
        try {
            check_repeatable(value);
            spec.set(options, value);
        } catch (const BadConfig& error) {
            throw BadConfig("--" + spec.name + ": " + error.what(), spec.help);
        }
    }
    options.parts.data = options.data;
    options.parts.seed = options.seed;
    return options;
}

const std::string& required_data(const Options& options) {
    if (options.data.empty())
        throw BadConfig("no data were given", "--data", "give a file, a folder or a glob");
    return options.data;
}

}  // namespace hetseq
