#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "hetseq/util/precision.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/data/corpus_options.hpp"
#include "hetseq/data/corpus_plan.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/state/layout_record.hpp"
#include "hetseq/task/parts.hpp"
#include "hetseq/session/options/options.hpp"

namespace hetseq {

class HostComm;

/// Effective option values in two forms that always agree: typed, and as the texts that config.cfg
/// and checkpoints hold.
class SettledOptions {
public:
    SettledOptions() = default;
    /// `table`: the options that this run has. Throws BadConfig that names the option.
    explicit SettledOptions(OptionValues values, OptionTable table = option_table())
        : table_{std::move(table)},
          values_{std::move(values)},
          options_{typed_options(values_, table_)} {}

    const Options& options() const noexcept { return options_; }
    const OptionValues& values() const noexcept { return values_; }
    const OptionTable& table() const noexcept { return table_; }
    /// Gives another value to the option whose value `place` is, a member of `options()`. Throws
    /// BadConfig that names the option.
    void settle(const std::string& place, std::string text);
    void settle(const std::int64_t& place, std::string text);
    void settle(const std::int64_t& place, std::int64_t value);
    /// The same with the values of all ranks, of which rank r's is the r-th, or with one for all.
    template <class T>
    void settle(const ByRank<T>& place, const std::vector<T>& values) {
        settle_text(&place, list_by_rank(values).text());
    }
    /// The option whose value `place` is, a member of `options()`.
    const OptionSpec& option_at(const void* place) const;

private:
    void settle_text(const void* place, std::string text);

    OptionTable table_;
    OptionValues values_;
    Options options_;
};

/// Everything that is settled before data or models are touched. It is the same on all ranks except
/// for options of a rank. `options().batch_size` is the global batch; numbers that differ over
/// ranks are lists by rank in `values()`.
struct RunSettings : SettledOptions {
    Topology topology = {};
    std::optional<LayoutRecord> layout = {};  // how these ranks were chosen; none: all train
    bool lends_to_checkpoints = false;        // by that choice, ranks of the host have no copies
    at::Device device = at::kCPU;
    Precision precision = Precision::fp32;
    std::vector<Precision> precisions = {};       // by rank
    std::vector<RecomputeChoice> recompute = {};  // by rank
    std::vector<ShardPart> shard_by = {};         // by rank
    std::vector<std::int64_t> threads = {};       // by rank
    CorpusSchema schema = {};                     // of the data files
    std::vector<std::int64_t> capacities = {};    // samples or padded tokens a micro-batch, by rank
    std::vector<std::int64_t> max_samples =
        {};  // of a micro-batch with samples of unequal length, by rank; empty: any
    CorpusOptions corpus = {};  // with this rank's cache

    /// True if samples have unequal lengths.
    bool is_ragged() const { return !length_fields(schema).empty(); }
    /// True if samples have unequal lengths, and no field of theirs counts as the batch's tokens.
    bool counts_samples() const { return is_ragged() && schema.units_field.empty(); }
    /// The option that says what a rank's micro-batch holds.
    const ByRank<std::int64_t>& capacity_list() const {
        return is_ragged() ? options().max_tokens : options().max_sentences;
    }
    /// True if memory decides what `rank` computes again in backward.
    bool recomputes_at_need(int rank) const;
    /// True if this rank, `rank`, computes on a CPU, with more threads than it has cores, as its
    /// part of its host's.
    bool lacks_cores(int rank) const;
    /// True if `rank` has a GPU, or a core more than threads that compute.
    bool has_core_to_spare(int rank) const;
    /// The size of the global batch.
    BatchSize batch_size() const noexcept { return {options().batch_size, options().batch_tokens}; }
};

/// Collective. Throws on all ranks.
SettledOptions settle_options(const HostComm& world, const GivenOptions& given, const Parts& parts);
/// Collective. Finds devices, settles what depends on ranks and sets this rank's threads. Throws on
/// all ranks. `before`: this rank's place before others were left out (discover_topology).
RunSettings set_up_ranks(const HostComm& world,
                         SettledOptions settled,
                         const Parts& parts,
                         const RankInfo* before = nullptr);

/// The limits of a rank's speed besides its device: its cores, memory, threads and capacity, and
/// how many ranks share its device.
std::string rank_limits(const RunSettings& settings, int rank);
/// The same with memory to 2 or 3 %: hosts of one kind have some MiB more or less.
std::string rough_rank_limits(const RunSettings& settings, int rank);

/// By rank, the same number for ranks that should be equally fast: those with the same device and
/// the same limits (except memory).
std::vector<int> like_ranks(const RunSettings& settings);

/// The type in which gradients go from rank to rank; none: their own, as on one rank, which sends
/// none.
std::optional<at::ScalarType> sent_type(const RunSettings& settings);

}  // namespace hetseq
