#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "hetseq/plan/memory_terms.hpp"

namespace hetseq {

class FlatParameters;
class HostComm;
class Model;
class Optimizer;
struct RunSettings;

/// What one rank knows of its memory before an optimizer is made [MiB].
struct OwnMemory {
    double process_mb = 0;  // that its device held before the model was made
    double data_mb = 0;     // that its caches of data may take, of the host
};

/// What the device's memory holds now [MiB], of the host that of this process.
double memory_in_use_mb(at::Device device);

/// Elements of the parameters that `model` holds and does not train.
std::int64_t frozen_elements(const Model& model);

/// What all ranks' memory has to hold. The same on all ranks.
class MemoryAccount {
public:
    /// What is asked of a model and its optimizer.
    struct Trained {
        std::int64_t elements = 0;       // of flat parameters, padding included
        std::int64_t frozen = 0;         // of parameters that are not trained
        std::int64_t element_bytes = 4;  // of each
        const Optimizer& small;          // one of the kind that will be made
        double bucket_mb = 0;            // of the gradients that are sent at once
        bool is_chain = false;           // stages of a pipeline could hold a part each
    };
    /// Collective. `saves`: whether checkpoints are written. All of the model and the state is each
    /// rank's at first.
    MemoryAccount(const HostComm& world,
                  const RunSettings& settings,
                  const Trained& trained,
                  const OwnMemory& own,
                  bool saves);

    /// What each rank's memory has left for the optimizer's state, and for the copy of it that
    /// checkpoints are written from [elements]; 0 or more. Where not all of it fits so, without
    /// such copies.
    std::vector<std::int64_t> room_for_state() const;
    /// Who holds the state: as `parameters` say.
    void note_shards(const FlatParameters& parameters);
    /// `rank` holds this part of the model, with its state, as a stage of a pipeline. Of `received`
    /// elements another stage sends it its gradients. `frozen`: elements that are not trained.
    void note_stage(int rank,
                    std::int64_t elements,
                    std::int64_t received = 0,
                    std::int64_t frozen = 0);
    /// No stage sums gradients with another rank.
    void note_no_sums() { model_.sent_bytes = 0; }
    /// The micro-batches in flight of such a stage, with workspace and messages.
    void note_stage_activations(int rank, double mb);
    /// Ranks whose memory does not hold the copies that checkpoints are written from go without
    /// them.
    void leave_out_copies_where_short();
    /// All ranks of the host do.
    void leave_out_copies();
    /// Whether a rank makes them. One with a GPU always does.
    bool has_copies(int rank) const { return has_copies_.at(static_cast<std::size_t>(rank)); }
    /// Whether the memory of any rank has to hold them.
    bool counts_copies() const;
    /// Throws BadConfig, with the numbers and with what would make it fit, where a rank's memory
    /// does not hold what it must before any micro-batch.
    void check(const RunSettings& settings) const;
    /// Collective. What this process holds of the host when model, optimizer and checkpoints have
    /// their memory, on ranks that compute there: what is not theirs is the process's.
    void note_resident(const HostComm& world, double mb);
    /// Collective. What a rank's largest micro-batch takes, as measured; by rank. `peak_mb`: what
    /// this process has held of the host at most since then, if speeds were measured: what is more
    /// than the terms is the process's, too.
    void note_activations(const HostComm& world, const std::vector<double>& mb, double peak_mb);

    /// Whether ranks may hold parts of the optimizer's state: it can do with that, and no update is
    /// late.
    bool can_cut_state() const noexcept { return can_cut_state_; }
    std::int64_t element_bytes() const noexcept { return model_.element_bytes; }
    /// Tensors of the state, and copies of them for checkpoints.
    std::int64_t held_tensors(int rank) const;

    std::vector<MemoryTerm> terms(int rank) const;
    double has_mb(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)).has_mb; }
    /// A row for each rank, a column for each term that any of them has [MiB].
    std::string table(const RunSettings& settings) const;
    /// Whether what a rank must hold before any micro-batch is within its memory, of which a
    /// twentieth is left free where checkpoints have no copies.
    bool fits(int rank) const;

private:
    double limit_mb(int rank) const;
    std::string lent_report() const;
    std::string short_report(const RunSettings& settings) const;
    std::string cure(const RunSettings& settings) const;
    bool copies_count(std::size_t rank) const;
    void leave_out_copies_of(std::size_t rank);
    std::vector<std::int64_t> room_beside_copies() const;
    bool would_fit_sharded() const;
    void give_state(const std::vector<std::int64_t>& elements);

    ModelMemory model_;
    std::vector<RankMemory> ranks_;
    std::vector<bool> is_on_host_;    // by rank: its device's memory is the host's
    std::vector<bool> has_copies_;    // by rank
    std::int64_t saved_tensors_ = 0;  // of the state, and of sums that wait
    bool averages_ = false;           // one of them is an average of the values
    double bucket_mb_ = 0;
    bool can_cut_state_ = false;
    bool is_chain_ = false;
    bool has_stages_ = false;
    bool saves_ = false;
};

}  // namespace hetseq
