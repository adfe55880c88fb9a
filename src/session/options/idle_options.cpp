#include "hetseq/session/options/idle_options.hpp"

#include <set>

#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

std::string line(const std::vector<std::string>& options,
                 const std::string& why,
                 const std::string& what_to_do) {
    return join(options, " and ") + (options.size() > 1 ? " have" : " has") + " no effect (" + why +
           "): " + what_to_do;
}

// What is done at validations.
std::vector<std::string> options_of_validation(const Options& options) {
    std::vector<std::string> given;
    if (options.trainer.patience > 0)
        given.push_back("--patience " + std::to_string(options.trainer.patience));
    if (options.trainer.valid_interval > 0)
        given.push_back("--valid-interval " + std::to_string(options.trainer.valid_interval));
    if (to_string(options.trainer.best_by) != to_string(BestBy{}))
        given.push_back("--best-by " + to_string(options.trainer.best_by));
    return given;
}

// Several workers have a share of each batch each.
bool is_one_worker(const std::string& workers) {
    return workers != "none" && workers != "auto" && workers.find(',') == std::string::npos;
}

// Schedules that do not look at the update at which decay ends.
bool decays_to_no_end(const std::string& schedule) {
    static const std::set<std::string> endless{"fixed", "inverse_sqrt", "step", "exponential"};
    return endless.count(schedule) > 0;
}

}  // namespace

std::vector<std::string> idle_options(const Options& options) {
    std::vector<std::string> lines;
    const ScheduleOptions& schedule = options.parts.schedule;
    if (const auto given = options_of_validation(options);
        options.valid_data.empty() && !given.empty())
        lines.push_back(line(given, "there are no validation data", "give --valid-data"));
    if (schedule.warmup_init_lr > 0 && schedule.warmup_updates == 0)
        lines.push_back(line({"--warmup-init-lr " + format_number(schedule.warmup_init_lr)},
                             "there is no warm-up",
                             "give --warmup-updates"));
    if (schedule.total_updates > 0 && decays_to_no_end(schedule.name))
        lines.push_back(line({"--total-num-update " + std::to_string(schedule.total_updates)},
                             "--lr-scheduler " + schedule.name + " does not end",
                             "give cosine or polynomial_decay, or leave it out"));
    const OptimizerOptions& optimizer = options.parts.optimizer;
    if (optimizer.name == "python" && optimizer.weight_decay > 0)
        lines.push_back(line({"--weight-decay " + format_number(optimizer.weight_decay)},
                             "the task makes its optimizer itself",
                             "give it there"));
    if (options.shard == "none" && options.shard_by.text() != "memory")
        lines.push_back(line({"--shard-by " + options.shard_by.text()},
                             "nothing is cut over the ranks",
                             "give --shard optimizer"));
    if (is_one_worker(options.virtual_workers) && options.balance.policy != "auto")
        lines.push_back(line({"--balance " + options.balance.policy},
                             "the ranks of a virtual worker have one share",
                             "leave it out"));
    if (options.virtual_workers == "none" && options.stage_units != "auto")
        lines.push_back(line({"--stage-units " + options.stage_units},
                             "ranks have whole replicas",
                             "give --virtual-workers"));
    for (const int signal : options.checkpoint_signals)
        if (options.stop_signals.count(signal) > 0)
            lines.push_back(line({signal_name(signal) + " in --checkpoint-signals"},
                                 "--stop-signals has it too",
                                 "give --stop-signals without it"));
    if (options.drop_below > 0 && options.save_dir.empty())
        lines.push_back(line({"--drop-below " + format_number(options.drop_below)},
                             "the speeds of earlier starts are in a run's folder",
                             "give --save-dir"));
    if (options.save_dir.empty() && !options.dry_run)
        lines.emplace_back(
            "nothing of this run is kept (there is no --save-dir): give one to keep the model, its "
            "checkpoints and metrics");
    return lines;
}

}  // namespace hetseq
