#include "hetseq/tools/report_command.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/report/page.hpp"
#include "hetseq/report/run_record.hpp"

namespace hetseq {

namespace fs = std::filesystem;

OptionsOf<ReportOptions> report_options() {
    return OptionsOf<ReportOptions>().add(
        &ReportOptions::output, text_option("output", "FILE", "report.html", "the file to write"));
}

namespace {

// A former report is replaced, whatever runs it was of.
void check_output(const std::string& output) {
    check_output_file(output, true);
    std::string begin(begin_of_report_page().size(), '\0');
    std::ifstream former(output);
    former.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    const bool is_there = former.gcount() > 0 || (!former.is_open() && fs::exists(output));
    if (is_there && begin != begin_of_report_page())
        throw BadConfig(output + " exists already",
                        "it is no report, and only a former report is replaced",
                        "name another file with --output");
}

}  // namespace

int report_command(const CommandWords& words) {
    const std::string output = words.read(report_options()).output;
    check_output(output);
    const std::vector<RunRecord> runs = read_runs(words.arguments);
    for (const RunRecord& run : runs)
        for (const std::string& sentence : run.missing)
            log::warn(run.name + ": " + sentence);
    write_atomically(output, report_page(runs));
    std::printf("%s\n", output.c_str());
    return 0;
}

}  // namespace hetseq
