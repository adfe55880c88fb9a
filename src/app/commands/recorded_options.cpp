#include "recorded_options.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/state/existing_folder.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/options/part_option_table.hpp"

namespace hetseq {

namespace {

template <class T>
void set_option(OptionValues& values, const T& place, std::string text) {
    values[option_name(place)] = std::move(text);
}

template <class T>
void drop_option(OptionValues& values, const T& place) {
    values.erase(option_name(place));
}

// The training's devices may be others than these, but fp64 is for its numbers.
void keep_fp64_alone(OptionValues& values) {
    const auto precision = values.find(option_name(any_options().precision));
    if (precision != values.end() && precision->second != "fp64")
        values.erase(precision);
}

// Of what was sent nothing is left in a model.
void forget_what_was_sent(OptionValues& values) {
    drop_option(values, any_options().reduce_precision);
}

// 4096 of "0=16384,1=4096,2=0": what each rank that worked held, which the longest sample fits. 0
// where there is none.
std::int64_t least_of(const ByRank<std::int64_t>& list) {
    std::int64_t least = 0;
    for (const std::int64_t number : list.values())
        if (number > 0 && (least == 0 || number < least))
            least = number;
    return least;
}

// Of --max-tokens, where nothing is said of it.
std::int64_t default_tokens(const OptionValues& values, const Parts& parts) {
    OptionValues defaults;
    const auto task = values.find(option_name(any_options().task));
    if (task != values.end() && parts.tasks.has(task->second))
        for (const auto& [name, value] : parts.tasks.get(task->second).defaults)
            defaults[name] = value;
    return least_of(run_options().read(defaults).max_tokens);
}

// The ranks may be others than the training's, but its samples are as long as they were. A stage of
// a pipeline may have held less than the longest.
void keep_room_for_a_sample(OptionValues& values, const Parts& parts) {
    const Options recorded = run_options().read(values);
    drop_option(values, any_options().max_tokens);
    const std::int64_t needed = std::max(least_of(recorded.max_tokens), recorded.max_length);
    if (needed > default_tokens(values, parts))
        set_option(values, any_options().max_tokens, std::to_string(needed));
}

void choose_data(OptionValues& values, RunData data) {
    const auto validation = values.find(option_name(any_options().valid_data));
    if (data == RunData::validation_if_any && validation != values.end())
        set_option(values, any_options().data, validation->second);
    if (data == RunData::none) {
        drop_option(values, any_options().data);
        drop_option(values, any_options().valid_data);
    }
}

}  // namespace

GivenOptions options_of_run(const std::filesystem::path& run,
                            const OptionValues& given,
                            const Parts& parts,
                            RunData data) {
    GivenOptions result{given, {}};
    check_folder(run);
    if (!std::filesystem::exists(run / "config.cfg"))
        throw MissingInput(run.string() + " holds no run",
                           "there is no config.cfg in it",
                           "give the folder of a run, its --save-dir");
    result.file = parse_config_file((run / "config.cfg").string(), option_table(parts));
    set_option(result.file, any_options().parts.init_model, run.string());
    if (std::filesystem::exists(run / "config.json"))
        drop_option(result.file, any_options().parts.model_config);
    drop_option(result.file, any_options().cache_mb);
    drop_option(result.file, any_options().device);
    drop_option(result.file, any_options().threads);
    drop_option(result.file, any_options().recompute);
    drop_option(result.file, any_options().shard_by);
    drop_option(result.file, any_options().max_sentences);
    keep_room_for_a_sample(result.file, parts);
    keep_fp64_alone(result.file);
    forget_what_was_sent(result.file);
    drop_option(result.file, any_options().batch_size);
    drop_option(result.file, any_options().batch_tokens);
    choose_data(result.file, data);
    return result;
}

}  // namespace hetseq
