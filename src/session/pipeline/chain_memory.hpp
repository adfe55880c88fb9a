#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/model/chain.hpp"
#include "hetseq/session/ranks/rank_memory.hpp"

namespace hetseq {

class HostComm;
class Model;
struct Parts;
struct RunSettings;

/// What stages of a model take of the ranks' memory beside micro-batches.
class ChainMemory {
public:
    struct Parameter {
        std::string name;
        std::int64_t elements = 0;
        bool trains = true;
    };
    /// `units`: the parameters of each; a tied one is in several.
    ChainMemory(MemoryAccount account, std::vector<std::vector<Parameter>> units, int ranks);

    /// Whether ranks of the host hold copies that checkpoints are written from.
    bool counts_copies() const { return account_.counts_copies(); }
    /// The same where checkpoints are written from the tensors themselves.
    ChainMemory without_copies() const;

    /// Values, gradients, state and copies of `units` on `rank`, and what other stages send of
    /// gradients [MiB].
    double stage_mb(int rank, UnitRange units) const;
    /// What `rank` holds without any of the model, its caches of data among it [MiB].
    double process_mb(int rank) const;
    double has_mb(int rank) const { return account_.has_mb(rank); }
    /// Values of `units` that are trained, and so the gradients [MiB].
    double values_mb(UnitRange units) const;
    /// A whole replica on `rank`, whose optimizer's state is cut over `ranks`; without the process
    /// [MiB].
    double sharded_mb(int rank, std::size_t ranks) const;
    /// Whether that is possible.
    bool can_cut_state() const noexcept { return account_.can_cut_state(); }

private:
    MemoryAccount account_;
    std::vector<std::vector<Parameter>> units_;
    int ranks_ = 0;
};

/// Collective. Of `model`, which holds no units. `own`: what this rank's memory has without it.
ChainMemory chain_memory(const HostComm& world,
                         const RunSettings& settings,
                         const Parts& parts,
                         const Model& model,
                         const OwnMemory& own,
                         bool saves);

}  // namespace hetseq
