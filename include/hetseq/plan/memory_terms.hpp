#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hetseq {

/// What a model takes, whoever holds it.
struct ModelMemory {
    std::int64_t elements = 0;       // of flat parameters, padding included
    std::int64_t frozen = 0;         // elements of parameters that are not trained
    std::int64_t element_bytes = 4;  // of a value, a gradient and a number of the state
    std::int64_t state_tensors = 0;  // of the optimizer: 2 for Adam
    std::int64_t gradient_sets =
        1;                        // with the copies that are sent; several where updates are late
    std::int64_t sent_bytes = 0;  // an element of the copy that is sent; 0: there is none
};

/// What a rank has, and what it holds beside a whole model [MiB].
struct RankMemory {
    double has_mb = 0;                          // its part of its device's memory
    double process_mb = 0;                      // before the model was made
    double data_mb = 0;                         // caches of data, this rank's part of the host's
    std::int64_t state_elements = 0;            // whose state it holds
    std::optional<std::int64_t> elements = {};  // whose values it holds; none: all of the model
    std::optional<std::int64_t> frozen = {};    // of those that are not trained; none: all
    std::int64_t cast_bytes = 0;                // an element, of copies to compute with; 0: none
    double copies_mb = 0;                       // that checkpoints are written from
    double scratch_mb = 0;                      // of sums over ranks
    double activations_mb = 0;                  // of its largest micro-batch; 0: not measured
};

/// A term of a rank's memory.
struct MemoryTerm {
    std::string name;  // "process", "values", ...
    double mb = 0;     // MiB
};

/// What a rank's memory holds at its fullest, term by term, in one order for all ranks. Those of 0
/// are there, too.
std::vector<MemoryTerm> memory_terms(const ModelMemory& model, const RankMemory& rank);

double sum_of(std::span<const MemoryTerm> terms);  // MiB

/// "process 210 + values 440 + gradients 440 + state 880 = 1970 MiB"; terms of 0 are left out.
std::string memory_text(std::span<const MemoryTerm> terms);

}  // namespace hetseq
