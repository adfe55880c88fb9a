#include "hetseq/util/process/crash_report.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/process/standard_streams.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/program.hpp"

int main(int argc, char** argv) {
    hetseq::signal_inbox::open();
    hetseq::keep_standard_streams();
    hetseq::install_crash_report();
    hetseq::keep_freed_memory();
    hetseq::keep_few_kernels();
    const int code = hetseq::run_program(argc, argv, hetseq::builtin_parts());
#ifdef HETSEQ_ENDS_AT_ONCE
    hetseq::end_at_once(code);
#else
    return code;
#endif
}
