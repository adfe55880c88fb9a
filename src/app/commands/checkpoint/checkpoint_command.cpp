#include "hetseq/tools/checkpoint_command.hpp"

#include <cstdio>
#include <string>

#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/tools/checkpoint_report.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/commands/checkpoint/checkpoint_average.hpp"

#include "checkpoint_export.hpp"

namespace hetseq {

namespace {

void say(const std::string& text) {
    std::fputs(text.c_str(), stdout);
}

int average(const CommandWords& words) {
    const AverageOptions options = words.read(average_options());
    check_output_file(options.output, options.overwrites);
    const auto checkpoints =
        first_of(regular_checkpoints_of(words.arguments.front()), options.last);
    average_checkpoints(checkpoints, options.output);
    say(options.output + ": the mean of " + count_text(std::ssize(checkpoints), "checkpoint") +
        (options.last > std::ssize(checkpoints)
             ? ", all that there are but for those that were saved for the clock alone\n"
             : "\n"));
    return 0;
}

int export_model(const CommandWords& words, const Parts& parts) {
    const ExportFormat options = words.read(export_options());
    say(export_for_transformers({.run = words.arguments.at(0),
                                 .checkpoint = options.checkpoint,
                                 .output = words.arguments.at(1),
                                 .overwrites = options.overwrites},
                                parts));
    return 0;
}

}  // namespace

int checkpoint_command(const CommandContext& context) {
    if (needs_no_tensors(context.words.form))
        return look_at_checkpoints(context.words);
    return context.words.form == "export" ? export_model(context.words, context.parts)
                                          : average(context.words);
}

}  // namespace hetseq
