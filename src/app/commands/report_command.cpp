#include <cstdio>
#include <string>
#include <vector>

#include "hetseq/report/page.hpp"
#include "hetseq/report/run_record.hpp"
#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

int report_command(const CommandContext& context) {
    std::vector<RunRecord> runs;
    for (const std::string& folder : context.words.arguments) {
        runs.push_back(read_run(folder));
        for (const std::string& sentence : runs.back().missing)
            log::warn(folder + ": " + sentence);
    }
    const std::string& output = context.words.text("output");
    write_atomically(output, report_page(runs));
    std::printf("%s\n", output.c_str());
    return 0;
}

}  // namespace hetseq
