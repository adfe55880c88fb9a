#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/comm/host/topology.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/task/part_options.hpp"
#include "hetseq/train/best_by.hpp"

namespace hetseq {

/// Every option's effective value, typed.
struct Options {
    // what is trained
    std::string task;
    std::string model;
    std::string dataset;
    std::string batching;
    PartOptions parts;
    std::string precision;  // fp32, fp64
    std::uint64_t seed = 1;

    // data
    std::string data;
    std::string valid_data;
    CorpusOptions corpus;  // but for cache_mb
    std::string cache_mb;

    // batch and balance
    std::int64_t batch_size = 0;    // 0: as batch_tokens says, or the capacities and update_freq
    std::int64_t batch_tokens = 0;  // 0: as batch_size says, or the capacities and update_freq
    std::string max_sentences;      // a number, or a list by rank, host or device (as all of a
                                    // rank's numbers); empty: by the kind of samples
    std::string max_tokens;
    std::int64_t max_length = 0;  // 0: the smallest of max_tokens
    bool skip_too_long = false;
    std::int64_t update_freq = 1;
    std::string balance;    // auto, declared, equal, file
    std::string plan_file;  // of balance "file"
    std::string cache_dir;  // "none": no cache; empty: the user's

    // optimization
    double clip_norm = 0;
    std::int64_t max_update = 0;  // 0: as many as max_epoch holds
    std::int64_t max_epoch = 0;   // 0: as many as max_update takes
    std::int64_t max_skips = 0;

    // checkpoints and stopping
    std::string resume;  // auto, must, never
    std::string restore_file;
    bool reset_optimizer = false;
    bool reset_lr_scheduler = false;
    bool reset_position = false;
    std::int64_t save_interval = 0;          // epochs; 0: not by epochs
    std::int64_t save_interval_updates = 0;  // 0: not by updates
    double save_minutes = 0;                 // 0: not by the clock
    std::int64_t keep_last = 0;              // 0: all
    double time_limit_s = 0;                 // 0: none
    std::int64_t stop_after = 0;             // updates of this start; 0: never
    std::set<int> stop_signals;
    std::set<int> checkpoint_signals;
    std::int64_t stop_exit_code = 75;
    BestBy best_by;
    std::int64_t patience = 0;        // 0: never stops early
    double stall_timeout = 0;         // [s]; 0: nobody watches
    std::int64_t check_interval = 0;  // 0: replicas are not compared
    std::string drift;                // warn, sync, abort

    // running
    std::string device = "auto";  // or a list by rank: rank_device
    std::string threads;          // 0: from the cores this rank may use
    double bucket_mb = 0;
    double join_timeout = 0;  // [s]
    std::int64_t log_interval = 0;
    std::int64_t valid_interval = 0;
    std::string save_dir;
    bool overwrite = false;
    bool dry_run = false;
    bool json = false;
};

/// job: must be the same on all ranks. rank: may differ. command: says what to do now, and is not
/// written to config.cfg.
enum class OptionScope { job, rank, command };

/// Says whether a checkpoint fixes an option. A run keeps options of `run` to its end. The others
/// may change in a run from --restore-file with --reset-position, --reset-optimizer or
/// --reset-lr-scheduler.
enum class FixedWith { nothing, run, position, optimizer, schedule };

/// How an option's text becomes its value; `set` throws BadConfig that says what was expected.
class OptionSetter {
public:
    template <class Function>
    OptionSetter(Function set, std::vector<std::string> choices = {})
        : set_{std::move(set)}, choices_{std::move(choices)} {}

    void operator()(Options& options, const std::string& text) const { set_(options, text); }

    /// The texts that it takes, if they can be listed. After a text that ends in ':' the user
    /// writes more.
    const std::vector<std::string>& choices() const { return choices_; }

private:
    std::function<void(Options&, const std::string&)> set_;
    std::vector<std::string> choices_;
};

/// A part that declared an option, such as "optimizer" and "lion".
struct OptionOwner {
    std::string option;  // the one that chooses the part
    std::string part;
    friend bool operator==(const OptionOwner&, const OptionOwner&) = default;
};

struct OptionSpec {
    std::string name;
    std::string type;           // as help shows it: "N", "X", "PATH", "NAME"; empty for a switch
    std::string default_value;  // a task may have its own
    OptionScope scope;
    FixedWith fixed_with;
    std::string help;
    OptionSetter set;
    std::string group = {};                // the heading it stands under
    std::vector<OptionOwner> owners = {};  // parts that declared it; empty: all runs have it
    bool is_ignored_elsewhere = false;     // no error where none of the owners is chosen
};

using OptionTable = std::vector<OptionSpec>;

/// The one table of the options that all runs have: name, type, default, help, scope and place.
/// Parts may add their own (part_option_table.hpp).
const OptionTable& option_table();

/// Option texts by name, as given or by default.
using OptionValues = std::map<std::string, std::string>;

/// Options by their source.
struct GivenOptions {
    OptionValues line;  // the command line
    OptionValues file;  // the configuration
};

/// Converts the values of all options of `table`. Throws BadConfig that names the option.
Options typed_options(const OptionValues& values, const OptionTable& table = option_table());

/// --data. Throws BadConfig when it is empty.
const std::string& required_data(const Options& options);

}  // namespace hetseq
