#include "hetseq/data/data_benchmark.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "hetseq/util/clock.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/loading/loader.hpp"

#include "corpus_impl.hpp"

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

// All ranks' parts of `batch`, in proportion to `capacities`.
std::vector<Slice> cut(const GlobalBatch& batch, const std::vector<std::int64_t>& capacities) {
    if (batch.items)
        return cut_by_rank(batch, capacities, ItemCost{}.of(*batch.items));
    const std::int64_t total =
        std::accumulate(capacities.begin(), capacities.end(), std::int64_t{0});
    std::vector<Slice> slices;
    std::int64_t begin = batch.begin;
    std::int64_t before = 0;  // capacity of the ranks up to this one
    for (const std::int64_t capacity : capacities) {
        before += capacity;
        const std::int64_t end = batch.begin + batch.size() * before / total;
        slices.push_back({begin, end});
        begin = end;
    }
    return slices;
}

// The time that an epoch took.
struct EpochTime {
    double wall_s = 0;  // of the slowest rank
    double cpu_s = 0;   // of all ranks
};

// Requests and takes all batches of `epoch`.
EpochTime time_epoch(const HostComm& world,
                     Loader& loader,
                     const BatchPlan& plan,
                     const DataBenchmarkOptions& options,
                     std::int64_t epoch) {
    world.barrier();
    const double start = monotonic_seconds();
    const double cpu_start = process_cpu_seconds();
    std::int64_t next = epoch * plan.batches_per_epoch();
    const std::int64_t end = next + plan.batches_per_epoch();
    while (next < end || loader.outstanding() > 0) {
        for (; next < end && loader.outstanding() <= batches_ahead; ++next) {
            const GlobalBatch batch = plan.batch(next);
            loader.request(batch, cut(batch, options.capacities), options.cap);
        }
        loader.take();
    }
    const double wall_s = monotonic_seconds() - start;
    const double cpu_s = process_cpu_seconds() - cpu_start;
    return {world.all_reduce(wall_s, ReduceOp::max), world.all_reduce(cpu_s, ReduceOp::sum)};
}

std::int64_t bytes_of(Corpus& corpus) {
    const Corpus::Impl& impl = *corpus.impl();
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < impl.layout.fields.size(); ++i) {
        const FieldLayout& field = impl.layout.fields[i];
        const std::int64_t rows = field.is_ragged ? impl.shards.values(i) : impl.shards.samples();
        bytes += rows * static_cast<std::int64_t>(field.row_bytes);
    }
    return bytes;
}

// The median of what `member` names.
double median(std::vector<EpochTime> times, double EpochTime::*member) {
    const auto middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end(), [=](const auto& a, const auto& b) {
        return a.*member < b.*member;
    });
    return (*middle).*member;
}

}  // namespace

DataBenchmark benchmark_data(const HostComm& world,
                             DataContext& context,
                             const std::string& spec,
                             const CorpusSchema& schema,
                             const DataBenchmarkOptions& options) {
    const RowsCollator collator;
    DataBenchmark result;
    std::vector<EpochTime> opened, read, cached;
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
        world.barrier();
        const double start = monotonic_seconds();
        Corpus corpus{context, spec, schema, options.corpus};
        const BatchPlan plan = make_batch_plan(corpus, options.batch, 1);
        opened.push_back({world.all_reduce(monotonic_seconds() - start, ReduceOp::max)});
        Loader loader{corpus, collator, {}};
        read.push_back(time_epoch(world, loader, plan, options, 0));
        cached.push_back(time_epoch(world, loader, plan, options, 1));
        result.samples = plan.samples();
        result.bytes = bytes_of(corpus);
        result.blocks = corpus.geometry().blocks();
    }
    const double samples_per_rank = static_cast<double>(result.samples) / world.size();
    result.open_s = median(opened, &EpochTime::wall_s);
    result.read_per_second = samples_per_rank / median(read, &EpochTime::wall_s);
    result.cached_per_second = samples_per_rank / median(cached, &EpochTime::wall_s);
    result.read_cpu_s = median(read, &EpochTime::cpu_s);
    result.cached_cpu_s = median(cached, &EpochTime::cpu_s);
    return result;
}

}  // namespace hetseq
