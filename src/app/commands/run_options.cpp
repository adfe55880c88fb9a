#include "run_options.hpp"

#include "hetseq/util/error.hpp"

#include "existing_folder.hpp"

#include "hetseq/session/part_option_table.hpp"
#include "hetseq/app/command_line/option_parser.hpp"

namespace hetseq {

GivenOptions options_of_run(const std::filesystem::path& run,
                            const OptionValues& given,
                            const Parts& parts) {
    GivenOptions result{given, {}};
    check_folder(run);
    if (!std::filesystem::exists(run / "config.cfg"))
        throw MissingInput(run.string() + " holds no run",
                           "there is no config.cfg in it",
                           "give the folder of a run, its --save-dir");
    result.file = parse_config_file((run / "config.cfg").string(), option_table(parts));
    result.file["init-model"] = run.string();
    if (std::filesystem::exists(run / "config.json"))
        result.file.erase("model-config");
    for (const char* of_its_ranks : {"cache-mb",
                                     "device",
                                     "threads",
                                     "batch-size",
                                     "batch-tokens",
                                     "max-sentences",
                                     "max-tokens"})
        result.file.erase(of_its_ranks);
    return result;
}

}  // namespace hetseq
