#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "hetseq/options/option_spec.hpp"
#include "hetseq/options/options_of.hpp"
#include "hetseq/data/corpus_options.hpp"
#include "hetseq/task/part_options.hpp"
#include "hetseq/train/trainer_options.hpp"
#include "hetseq/session/ranks/by_rank.hpp"

namespace hetseq {

/// How a batch is divided among ranks.
struct Balance {
    std::string policy = "auto";  // auto, declared, equal, file
    std::string plan_file{};      // of policy "file"
};

/// Every option's effective value, typed. What one component reads is a structure of its own, whose
/// options it declares itself.
struct Options {
    // what is trained
    std::string task;
    std::string model;
    std::string dataset;
    std::string batching;
    PartOptions parts;
    ByRank<PrecisionChoice> precision;
    ByRank<RecomputeChoice> recompute;
    std::string shard;  // none, optimizer
    ByRank<ShardPart> shard_by;
    std::string virtual_workers;  // none, auto or a list of ranks and hosts
    std::string stage_units;      // auto, or a number for each stage
    std::uint64_t seed = 1;

    // data
    std::string data;
    std::string valid_data;
    CorpusOptions corpus;
    ByRank<std::int64_t> cache_mb;

    // batch and balance
    std::int64_t batch_size = 0;    // 0: as batch_tokens says, or the capacities and update_freq
    std::int64_t norm_group = 32;   // samples that a model with groups looks at together
    std::int64_t batch_tokens = 0;  // 0: as batch_size says, or the capacities and update_freq
    ByRank<std::int64_t> max_sentences;  // empty: by the kind of samples
    ByRank<std::int64_t> max_tokens;
    std::int64_t max_length = 0;  // 0: the smallest of max_tokens
    std::int64_t update_freq = 1;
    Balance balance;
    std::string cache_dir;  // "none": no cache; empty: the user's

    // optimization
    TrainerOptions trainer;
    std::int64_t max_update = 0;  // 0: as many as max_epoch holds
    std::int64_t max_epoch = 0;   // 0: as many as max_update takes

    // checkpoints and stopping
    std::string resume;  // auto, must, never
    std::string restore_file;
    bool reset_optimizer = false;
    bool reset_lr_scheduler = false;
    bool reset_position = false;
    std::optional<double> save_minutes = {};  // 0: not by the clock; none: as often as is good
    std::int64_t keep_last = 0;               // 0: all
    double time_limit_s = 0;                  // 0: none
    std::set<int> stop_signals;
    std::set<int> checkpoint_signals;
    std::int64_t stop_exit_code = 75;
    double stall_timeout = 0;  // [s]; 0: nobody watches
    double drop_below = 0;     // of its kind's speed, a device is left out; 0: none is

    // running
    ByRank<DeviceChoice> device;
    ByRank<std::int64_t> threads;  // 0: from the cores this rank may use
    double bucket_mb = 0;
    std::string reduce_precision;  // fp32 or bf16
    double join_timeout = 0;       // [s]
    std::int64_t log_interval = 0;
    std::string save_dir;
    bool overwrite = false;
    bool dry_run = false;
    bool json = false;
};

/// The options that all runs have, and the members that they become. Parts may add their own
/// (part_option_table.hpp).
const OptionsOf<Options>& run_options();

/// All that is known of them but their values, by heading.
const OptionTable& option_table();

/// Converts the values of all options of `table`; one without a value has its default. Throws
/// BadConfig that names the option.
Options typed_options(const OptionValues& values, const OptionTable& table = option_table());

/// --data. Throws BadConfig when it is empty.
const std::string& required_data(const Options& options);

}  // namespace hetseq
