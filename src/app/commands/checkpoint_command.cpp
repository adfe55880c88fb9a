#include <cstdio>
#include <limits>

#include "hetseq/util/error.hpp"

#include "checkpoint_export.hpp"

#include "hetseq/app/commands.hpp"
#include "hetseq/app/commands/checkpoint_report.hpp"

namespace hetseq {

namespace {

using Checkpoints = std::vector<std::filesystem::path>;

void say(const std::string& text) {
    std::fputs(text.c_str(), stdout);
}

// The newest --last of them.
Checkpoints chosen_checkpoints(const CommandWords& words) {
    const auto last = static_cast<std::size_t>(
        words.whole_number("last", 0, std::numeric_limits<std::int64_t>::max()));
    Checkpoints checkpoints = checkpoints_of(words.arguments.front());
    if (last > 0 && last < checkpoints.size())
        checkpoints.resize(last);
    return checkpoints;
}

int list(const CommandWords& words) {
    say(list_checkpoints(chosen_checkpoints(words), words.options.count("json") != 0));
    return 0;
}

int verify(const CommandWords& words) {
    int damaged = 0;
    say(verify_checkpoints(chosen_checkpoints(words), damaged));
    return damaged > 0 ? static_cast<int>(ExitCode::bad_data) : 0;
}

int inspect(const CommandWords& words) {
    say(inspect_checkpoint(checkpoints_of(words.arguments.front()).front()));
    return 0;
}

int average(const CommandWords& words) {
    const Checkpoints checkpoints = chosen_checkpoints(words);
    const std::string& output = words.text("output");
    average_checkpoints(checkpoints, output);
    say(output + ": the mean of " + std::to_string(checkpoints.size()) + " checkpoints\n");
    return 0;
}

int export_model(const CommandWords& words) {
    words.choice("format", {"hf"});
    say(export_for_transformers({.run = words.arguments.at(0),
                                 .checkpoint = words.text("checkpoint"),
                                 .output = words.arguments.at(1),
                                 .overwrites = words.has("overwrite")}));
    return 0;
}

}  // namespace

int checkpoint_command(const CommandContext& context) {
    const CommandWords& words = context.words;
    if (words.form == "list")
        return list(words);
    if (words.form == "verify")
        return verify(words);
    if (words.form == "export")
        return export_model(words);
    return words.form == "inspect" ? inspect(words) : average(words);
}

}  // namespace hetseq
