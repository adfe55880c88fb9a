// All ranks fail alike while their readers are at work, and leave as the program does;
// app_ending checks mpirun's exit status.
//   late: the last rank fails later than the others, whose readers have stopped by then
//   stuck: the last rank's reader never returns from a read that the others take part in
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/app/failure.hpp"

#include "data/generated_corpus.hpp"

namespace hetseq {

namespace {

using std::chrono::milliseconds;

bool is_stuck = false;

class NoRows final : public Collator {
public:
    MicroBatch collate(const TensorDict&, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        batch.weights = {static_cast<double>(sample_ids.size(0))};
        return batch;
    }
};

}  // namespace

void fault_point(const char* name, std::int64_t) {
    if (std::strcmp(name, "io_thread") == 0)
        std::this_thread::sleep_for(is_stuck ? std::chrono::hours{1} : milliseconds{10});
}

namespace {

[[noreturn]] void fail_while_reading(const HostComm& world,
                                     const std::string& folder,
                                     const std::string& way) {
    DataContext context{world, true};
    Corpus corpus{context,
                  folder,
                  test::bert_like_schema(),
                  {.shuffle_blocks = 2, .block_length = 7, .cache_mb = 1}};
    const NoRows collator;
    Loader loader{corpus, collator, {}};
    const BatchPlan plan{corpus.samples(), 200};
    const GlobalBatch batch = plan.batch(0);
    const std::vector<Slice> slices(static_cast<std::size_t>(world.size()),
                                    Slice{batch.begin, batch.end});
    const bool is_last = world.rank() == world.size() - 1;
    is_stuck = way == "stuck" && is_last;
    loader.request(batch, slices, {.samples = 200});
    std::this_thread::sleep_for(milliseconds{way == "late" && is_last ? 150 : 50});
    throw BadData("on purpose");
}

int run(int argc, char** argv) {
    const MpiEnvironment environment{argc, argv};
    const HostComm world = HostComm::world(environment);
    const HostComm meeting = world.duplicate();
    const test::SharedFolder folder{world};
    test::write_bert_like_corpus(world, folder, {120, 80});
    try {
        fail_while_reading(world, folder.path(), argv[1]);
    } catch (const std::exception& error) {
        return end_ranks(meeting, error);
    }
}

}  // namespace
}  // namespace hetseq

int main(int argc, char** argv) {
    if (argc != 2)
        return 64;
    const int code = hetseq::run(argc, argv);
    // A thread that is still at work meets MPI's end.
    std::this_thread::sleep_for(std::chrono::milliseconds{500});
    return code;
}
