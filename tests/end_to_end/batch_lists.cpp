// batch_lists TASK DATA BATCH_TOKENS UPDATES SEED: the samples of each update, one JSON list of
// sample numbers a line, as `hetseq train` takes them.
#include <cstdio>
#include <string>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/task/parts.hpp"

int main(int argc, char** argv) {
    using namespace hetseq;
    if (argc != 6) {
        std::fputs("usage: batch_lists TASK DATA BATCH_TOKENS UPDATES SEED\n", stderr);
        return 64;
    }
    const std::string task = argv[1], data = argv[2];
    MpiEnvironment environment(argc, argv);
    const HostComm world = HostComm::world(environment);
    DataContext context(world, false);
    const Parts parts = builtin_parts();
    PartOptions options;
    options.data = data;
    Corpus corpus(context, data, parts.datasets.get(parts.tasks.get(task).dataset)(options), {});
    const BatchPlan plan =
        make_batch_plan(corpus, {.units = std::stoll(argv[3])}, std::stoull(argv[5]));
    for (std::int64_t update = 0; update < std::stoll(argv[4]); ++update) {
        std::string line;
        for (const std::int64_t sample : plan.batch(update).items->samples)
            line += (line.empty() ? "[" : ", ") + std::to_string(sample);
        std::puts((line + "]").c_str());
    }
    return 0;
}
