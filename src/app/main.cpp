#include <algorithm>
#include <string>
#include <vector>

#include "hetseq/util/crash_report.hpp"
#include "hetseq/util/signal_inbox.hpp"

#include "command_line/python_task.hpp"

#include "hetseq/task/parts.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"
#include "hetseq/app/standard_streams.hpp"

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (hetseq::names_python_task(words))
        return hetseq::continue_in_python(words);
    hetseq::signal_inbox::open();
    hetseq::keep_standard_streams();
    hetseq::install_crash_report();
    hetseq::keep_freed_memory();
    return hetseq::run_program(argc, argv, hetseq::builtin_parts());
}
