#include "hetseq/tools/report_command.hpp"

#include <cstdio>
#include <string>
#include <vector>

#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/report/page.hpp"
#include "hetseq/report/run_record.hpp"

namespace hetseq {

OptionsOf<ReportOptions> report_options() {
    return OptionsOf<ReportOptions>().add(
        &ReportOptions::output, text_option("output", "FILE", "report.html", "the file to write"));
}

int report_command(const CommandWords& words) {
    const std::vector<RunRecord> runs = read_runs(words.arguments);
    for (const RunRecord& run : runs)
        for (const std::string& sentence : run.missing)
            log::warn(run.name + ": " + sentence);
    const std::string output = words.read(report_options()).output;
    write_atomically(output, report_page(runs));
    std::printf("%s\n", output.c_str());
    return 0;
}

}  // namespace hetseq
