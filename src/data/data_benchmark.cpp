#include "hetseq/data/data_benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

namespace {

constexpr std::size_t batches_ahead = 4;

class RowsCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor& sample_ids) const override {
        MicroBatch batch;
        for (const auto& [name, tensor] : rows)
            batch.tensors[name] = tensor.clone();
        batch.weights = {static_cast<double>(sample_ids.numel())};
        return batch;
    }
};

// Requests and takes all batches of `epoch` [s].
double time_epoch(const HostComm& world,
                  Loader& loader,
                  const BatchPlan& plan,
                  std::int64_t epoch) {
    const std::vector<std::int64_t> ranks(static_cast<std::size_t>(world.size()), 0);
    const auto request = [&](std::int64_t update) {
        const GlobalBatch batch = plan.batch(update);
        std::vector<std::int64_t> units = ranks;
        for (std::size_t r = 0; r < units.size(); ++r)
            units[r] = batch.items
                           ? 1
                           : batch.size() * static_cast<std::int64_t>(r + 1) / world.size() -
                                 batch.size() * static_cast<std::int64_t>(r) / world.size();
        loader.request(batch, cut_by_rank(batch, units), {});
    };
    world.barrier();
    const auto start = std::chrono::steady_clock::now();
    std::int64_t next = epoch * plan.batches_per_epoch();
    const std::int64_t end = next + plan.batches_per_epoch();
    while (next < end || loader.outstanding() > 0) {
        while (next < end && loader.outstanding() <= batches_ahead)
            request(next++);
        loader.take();
    }
    const std::chrono::duration<double> own = std::chrono::steady_clock::now() - start;
    return world.all_reduce(own.count(), ReduceOp::max);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

DataBenchmark benchmark_data(const HostComm& world,
                             DataContext& context,
                             const std::string& spec,
                             const CorpusSchema& schema,
                             const DataBenchmarkOptions& options) {
    const RowsCollator collator;
    DataBenchmark result;
    std::vector<double> read;
    std::vector<double> cached;
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
        Corpus corpus{context, spec, schema, options.corpus};
        Loader loader{corpus, collator, {}};
        const BatchPlan plan =
            make_batch_plan(corpus, {.samples = options.batch_size * world.size()}, 1);
        read.push_back(time_epoch(world, loader, plan, 0));
        cached.push_back(time_epoch(world, loader, plan, 1));
        result.samples = corpus.samples();
        result.blocks = corpus.geometry().blocks();
    }
    const double samples_per_rank = static_cast<double>(result.samples) / world.size();
    result.read_per_second = samples_per_rank / median(read);
    result.cached_per_second = samples_per_rank / median(cached);
    return result;
}

}  // namespace hetseq
