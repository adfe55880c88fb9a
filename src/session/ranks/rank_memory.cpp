#include "hetseq/session/ranks/rank_memory.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/host/device_memory.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/usable_memory.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/checkpoint/checkpoint_files.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/session/ranks/sharding.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

constexpr double most_scratch_mb = 32;  // of sums, whatever the ranks
constexpr double checkpoint_file_mb = 256;
constexpr double collected_window_mb = 32;  // of what `PeerTransfers` brings

// Of its device; ranks that share one share it.
double memory_of(const RunSettings& settings, const RankInfo& info) {
    const auto sharing = std::count_if(
        settings.topology.ranks.begin(), settings.topology.ranks.end(), [&](const RankInfo& other) {
            return other.rank == info.rank ||
                   (info.has_gpu() && other.device_uuid == info.device_uuid);
        });
    return static_cast<double>(info.memory_mb) / static_cast<double>(sharing);
}

// What a rank writes of a checkpoint.
struct OwnShare {
    double values_mb = 0;
    double state_mb = 0;
};

// By rank, where the state is cut into files, but for an average of the values.
std::vector<OwnShare> own_shares(double values_mb, double state_mb, bool averages, int ranks) {
    std::vector<double> files_mb{values_mb};
    if (averages)
        files_mb.push_back(values_mb);
    double left_mb = state_mb - (averages ? values_mb : 0);
    for (; left_mb > 0; left_mb -= checkpoint_file_mb)
        files_mb.push_back(std::min(left_mb, checkpoint_file_mb));
    std::vector<std::int64_t> bytes;
    for (const double mb : files_mb)
        bytes.push_back(std::llround(mb * bytes_of_mib));
    const std::vector<int> owners = checkpoint_owners(bytes, ranks);
    std::vector<OwnShare> shares(static_cast<std::size_t>(ranks));
    shares[static_cast<std::size_t>(owners.front())].values_mb = values_mb;
    for (std::size_t file = 1; file < owners.size(); ++file)
        shares[static_cast<std::size_t>(owners[file])].state_mb += files_mb[file];
    return shares;
}

// Like the parameters: of the state, and sums that are not applied yet.
std::int64_t saved_tensors(const Optimizer& optimizer, const RunSettings& settings) {
    return optimizer.Optimizer::state_tensors() + settings.options().trainer.staleness;
}

}  // namespace

double memory_in_use_mb(at::Device device) {
    if (!device.is_cpu())
        return used_device_memory_mb(device);
    PeakMemory::release();
    return resident_memory_mb();
}

std::int64_t frozen_elements(const Model& model) {
    std::int64_t elements = 0;
    for (const NamedTensor& parameter : model.named_parameters())
        if (!parameter.tensor.requires_grad() && model.is_held(parameter.name))
            elements += parameter.tensor.numel();
    return elements;
}

MemoryAccount::MemoryAccount(const HostComm& world,
                             const RunSettings& settings,
                             const Trained& trained,
                             const OwnMemory& own,
                             bool saves)
    : model_{.elements = trained.elements,
             .frozen = trained.frozen,
             .element_bytes = trained.element_bytes,
             .state_tensors = trained.small.state_tensors(),
             .gradient_sets = 1 + settings.options().trainer.staleness,
             .sent_bytes = sent_type(settings) ? 2 : 0},
      saved_tensors_{saved_tensors(trained.small, settings)},
      averages_{settings.options().parts.optimizer.ema > 0},
      bucket_mb_{trained.bucket_mb},
      can_cut_state_{trained.small.follows_shards() && settings.options().trainer.staleness == 0},
      is_chain_{trained.is_chain},
      saves_{saves} {
    const std::vector<double> process = world.all_gather(own.process_mb);
    const std::vector<double> data = world.all_gather(own.data_mb);
    for (const RankInfo& info : settings.topology.ranks) {
        const auto r = static_cast<std::size_t>(info.rank);
        ranks_.push_back({.has_mb = memory_of(settings, info),
                          .process_mb = process[r],
                          .data_mb = info.has_gpu() ? 0 : data[r],
                          .cast_bytes = narrow_words(settings.precisions[r]).empty() ? 0 : 2});
        is_on_host_.push_back(!info.has_gpu());
        has_copies_.push_back(true);
    }
    give_state(std::vector<std::int64_t>(ranks_.size(), model_.elements));
}

void MemoryAccount::give_state(const std::vector<std::int64_t>& elements) {
    const int count = static_cast<int>(ranks_.size());
    const double values_mb =
        static_cast<double>(model_.elements * model_.element_bytes) / bytes_of_mib;
    const bool is_cut =
        std::accumulate(elements.begin(), elements.end(), std::int64_t{0}) == model_.elements &&
        count > 1;
    const std::vector<OwnShare> written =
        own_shares(values_mb, values_mb * static_cast<double>(saved_tensors_), averages_, count);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        RankMemory& memory = ranks_[r];
        memory.state_elements = elements[r];
        const double saved_mb =
            static_cast<double>(elements[r] * model_.element_bytes * saved_tensors_) / bytes_of_mib;
        const double part = static_cast<double>(elements[r]) / static_cast<double>(model_.elements);
        memory.copies_mb =
            !copies_count(r)
                ? 0
                : written[r].values_mb + (is_cut || saved_mb == 0 ? saved_mb : written[r].state_mb);
        memory.scratch_mb = count == 1 ? 0
                            : is_cut   ? std::min(most_scratch_mb, bucket_mb_ * part * (count - 1))
                                       : std::min(bucket_mb_, most_scratch_mb);
    }
}

bool MemoryAccount::copies_count(std::size_t rank) const {
    return saves_ && is_on_host_[rank] && has_copies_[rank];
}

bool MemoryAccount::counts_copies() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (copies_count(r))
            return true;
    return false;
}

void MemoryAccount::leave_out_copies_of(std::size_t rank) {
    has_copies_[rank] = false;
    ranks_[rank].copies_mb = 0;
}

void MemoryAccount::leave_out_copies() {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (is_on_host_[r])
            leave_out_copies_of(r);
}

// Where activations are known nothing has to be left for them.
void MemoryAccount::leave_out_copies_where_short() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const RankMemory& memory = ranks_[r];
        const double sum_mb = sum_of(terms(static_cast<int>(r)));
        const double most_mb = memory.has_mb * (memory.activations_mb > 0 ? 1 : usable_memory);
        const bool helps = sum_mb - memory.copies_mb <= most_mb || sum_mb > memory.has_mb;
        if (copies_count(r) && memory.copies_mb > 0 && memory.has_mb > 0 && sum_mb > most_mb &&
            helps)
            leave_out_copies_of(r);
    }
}

std::vector<std::int64_t> MemoryAccount::room_for_state() const {
    const std::vector<std::int64_t> room = room_beside_copies();
    if (!counts_copies() ||
        std::accumulate(room.begin(), room.end(), std::int64_t{0}) >= model_.elements)
        return room;
    MemoryAccount without = *this;
    without.leave_out_copies();
    return without.room_beside_copies();
}

std::vector<std::int64_t> MemoryAccount::room_beside_copies() const {
    MemoryAccount without = *this;
    without.give_state(std::vector<std::int64_t>(ranks_.size(), 0));
    std::vector<std::int64_t> room;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const double left_mb =
            usable_memory * ranks_[r].has_mb - sum_of(memory_terms(model_, without.ranks_[r]));
        const std::int64_t held = std::max<std::int64_t>(held_tensors(static_cast<int>(r)), 1);
        const auto bytes = static_cast<double>(held * model_.element_bytes);
        room.push_back(std::max<std::int64_t>(std::llround(left_mb * bytes_of_mib / bytes), 0));
    }
    return room;
}

std::int64_t MemoryAccount::held_tensors(int rank) const {
    return model_.state_tensors +
           (copies_count(static_cast<std::size_t>(rank)) ? saved_tensors_ : 0);
}

void MemoryAccount::note_shards(const FlatParameters& parameters) {
    if (parameters.state_ranges().empty())
        return;
    std::vector<std::int64_t> elements(ranks_.size(), 0);
    for (const OwnedRange& range : parameters.state_ranges())
        elements[static_cast<std::size_t>(range.owner)] += range.length;
    give_state(elements);
}

// Checkpoints are collected when no gradients are under way.
void MemoryAccount::note_stage(int rank,
                               std::int64_t elements,
                               std::int64_t received,
                               std::int64_t frozen) {
    const auto r = static_cast<std::size_t>(rank);
    RankMemory& memory = ranks_.at(r);
    has_stages_ = true;
    memory.elements = memory.state_elements = elements;
    memory.frozen = frozen;
    const auto saved = static_cast<double>(saved_tensors_);
    const double given_mb =
        static_cast<double>(elements * model_.element_bytes) / bytes_of_mib * (1 + saved);
    memory.copies_mb = copies_count(r) ? given_mb : 0;
    const double all_mb =
        static_cast<double>(model_.elements * model_.element_bytes) / bytes_of_mib;
    const int count = static_cast<int>(ranks_.size());
    const OwnShare written = own_shares(all_mb, all_mb * saved, averages_, count)[r];
    const bool collects = count > 1 && written.values_mb + written.state_mb > 0;
    const double collected_mb = saves_ && is_on_host_[r] && elements > 0 && collects
                                    ? std::min(collected_window_mb, all_mb * (1 + saved) - given_mb)
                                    : 0;
    const std::int64_t sent_bytes =
        model_.sent_bytes > 0 ? model_.sent_bytes : model_.element_bytes;
    memory.scratch_mb =
        std::max(collected_mb, static_cast<double>(received * sent_bytes) / bytes_of_mib);
}

void MemoryAccount::note_stage_activations(int rank, double mb) {
    ranks_.at(static_cast<std::size_t>(rank)).activations_mb = mb;
}

void MemoryAccount::note_resident(const HostComm& world, double mb) {
    const std::vector<double> resident = world.all_gather(mb);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (!is_on_host_[r])
            continue;
        RankMemory held = ranks_[r];
        held.process_mb = held.data_mb = held.scratch_mb = held.activations_mb = 0;
        held.cast_bytes = 0;
        ranks_[r].process_mb = std::max(0.0, resident[r] - sum_of(memory_terms(model_, held)));
    }
}

void MemoryAccount::note_activations(const HostComm& world,
                                     const std::vector<double>& mb,
                                     double peak_mb) {
    const std::vector<double> peaks = world.all_gather(peak_mb);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        ranks_[r].activations_mb = mb[r];
        if (mb[r] == 0)
            continue;
        ranks_[r].cast_bytes = 0;  // measured with them
        RankMemory held = ranks_[r];
        held.data_mb = held.scratch_mb = 0;
        if (is_on_host_[r])
            ranks_[r].process_mb += std::max(0.0, peaks[r] - sum_of(memory_terms(model_, held)));
    }
}

std::vector<MemoryTerm> MemoryAccount::terms(int rank) const {
    return memory_terms(model_, ranks_.at(static_cast<std::size_t>(rank)));
}

// The rest is for what libraries take when they are first used, and for activations that are not
// known.
double MemoryAccount::limit_mb(int rank) const {
    constexpr double without_copies = 0.95;
    const RankMemory& memory = ranks_.at(static_cast<std::size_t>(rank));
    const bool is_tight = !has_copies(rank) && memory.activations_mb == 0;
    return memory.has_mb * (is_tight ? without_copies : 1);
}

bool MemoryAccount::fits(int rank) const {
    return has_mb(rank) == 0 || sum_of(terms(rank)) <= limit_mb(rank);
}

bool MemoryAccount::would_fit_sharded() const {
    const std::vector<std::int64_t> room = room_for_state();
    const std::int64_t all = std::accumulate(room.begin(), room.end(), std::int64_t{0});
    if (!can_cut_state_ || ranks_.size() == 1 || all < model_.elements)
        return false;
    MemoryAccount sharded = *this;
    std::vector<std::int64_t> elements;
    for (const std::int64_t own : room)
        elements.push_back(static_cast<std::int64_t>(static_cast<double>(model_.elements) *
                                                     static_cast<double>(own) /
                                                     static_cast<double>(all)));
    elements.front() +=
        model_.elements - std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
    sharded.give_state(elements);
    sharded.leave_out_copies_where_short();
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (!sharded.fits(static_cast<int>(r)))
            return false;
    return true;
}

std::string MemoryAccount::cure(const RunSettings& settings) const {
    const bool is_sharded = settings.options().shard != "none";
    const bool by_memory = is_sharded && settings.shard_by.front().by == ShardPart::By::memory;
    std::string cure = "use a smaller model, devices with more memory, or fewer ranks on a host";
    if (has_stages_)
        cure = "give --stage-units auto, or more ranks to the virtual worker";
    else if (!by_memory && would_fit_sharded())
        cure = is_sharded ? "give --shard-by memory: cut so, it fits"
                          : "give --shard optimizer: cut by memory, it fits";
    if (!has_stages_ && is_chain_ && ranks_.size() > 1)
        cure += ", or let ranks hold a part of the model each (--virtual-workers auto)";
    return cure;
}

void MemoryAccount::check(const RunSettings& settings) const {
    for (const RankInfo& info : settings.topology.ranks) {
        if (fits(info.rank))
            continue;
        throw BadConfig("the memory of rank " + std::to_string(info.rank) + " on " + info.host +
                            " does not hold the model: " + memory_text(terms(info.rank)) +
                            " before any micro-batch",
                        "it has " + std::to_string(std::llround(has_mb(info.rank))) + " MiB" +
                            (limit_mb(info.rank) < has_mb(info.rank)
                                 ? ", of which a twentieth is left for what no plan knows"
                                 : ""),
                        cure(settings));
    }
}

std::string MemoryAccount::table(const RunSettings& settings) const {
    std::vector<std::vector<std::string>> rows{{"rank"}};
    std::vector<std::vector<MemoryTerm>> all;
    for (const RankInfo& info : settings.topology.ranks)
        all.push_back(terms(info.rank));
    std::vector<std::size_t> shown;
    for (std::size_t t = 0; t < all.front().size(); ++t)
        if (std::any_of(all.begin(), all.end(), [&](const auto& own) { return own[t].mb >= 0.5; }))
            shown.push_back(t);
    for (const std::size_t t : shown)
        rows[0].push_back(all.front()[t].name);
    rows[0].insert(rows[0].end(), {"together", "of MiB"});
    for (std::size_t r = 0; r < all.size(); ++r) {
        std::vector<std::string> row{std::to_string(r)};
        for (const std::size_t t : shown)
            row.push_back(std::to_string(std::llround(all[r][t].mb)));
        row.push_back(std::to_string(std::llround(sum_of(all[r]))));
        row.push_back(std::to_string(std::llround(ranks_[r].has_mb)));
        rows.push_back(std::move(row));
    }
    return format_table(rows) + lent_report() + short_report(settings);
}

// It may still train: libraries' pages, which are counted for each process, may be shared.
std::string MemoryAccount::short_report(const RunSettings& settings) const {
    std::vector<int> are_short;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (has_mb(static_cast<int>(r)) > 0 &&
            sum_of(terms(static_cast<int>(r))) > ranks_[r].has_mb)
            are_short.push_back(static_cast<int>(r));
    if (are_short.empty())
        return "";
    return "memory may be too small on " + name_ranks(are_short) +
           ", where the system may end this job: " + cure(settings) + "\n";
}

std::string MemoryAccount::lent_report() const {
    std::vector<int> without;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (!has_copies_[r])
            without.push_back(static_cast<int>(r));
    if (without.empty())
        return "";
    return "no memory is left for copies on " + name_ranks(without) +
           ": the next optimizer step waits until a checkpoint is written\n";
}

}  // namespace hetseq
