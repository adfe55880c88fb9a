#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/state/evaluation.hpp"
#include "hetseq/train/trainer.hpp"

#include "train/pipeline/staged_replica.hpp"

namespace hetseq {
class RunFolder;
}  // namespace hetseq

namespace hetseq::test {

/// A training run of a pipeline, or of one rank.
struct StagedRun {
    StagedCase staged;
    std::string data;  // of `write_toy_corpus`, at most `samples` rows, of which only the ids count
    std::string optimizer = "adamw";  // or lamb, sgd
    std::int64_t batch = 7;           // samples
    std::int64_t micro_batch = 2;
    std::vector<std::int64_t> micro_batches = {};  // by pipeline, which is as fast as its own is
                                                   // large; empty: `micro_batch` for all
    std::int64_t updates = 8;                      // two epochs of four
    double clip_norm = 0.5;
    const RunFolder* folder = nullptr;
    bool saves = false;      // at the end, into `folder`
    std::string from = {};   // a checkpoint's folder, to go on from
    bool validates = false;  // at the end
    std::int64_t staleness = 0;
    std::optional<at::ScalarType> sent_type = {};  // of gradients; none: their own
    std::int64_t stop_after = 0;
};

struct StagedResult {
    TrainerReport report;
    std::map<std::string, at::Tensor> values;  // (n), of what this rank holds
    std::vector<double> losses;                // of the last update
};

/// A number of all the bits of `values`, in their order: unlike ones have unlike numbers, but for
/// chance.
std::int64_t bits_of(const at::Tensor& values);

/// Collective over `world`: one rank, or those of the stages.
StagedResult train_staged(const StagedRun& run, const HostComm& world);

/// Collective. The parameters and losses of `run` on the first rank alone, while the others wait:
/// if all of them computed it, they would need the cores of one another.
StagedResult train_on_first_rank(const StagedRun& run, const HostComm& world);

/// Collective. The numbers of one validation of what `run` begins with.
Evaluation evaluate_staged(const StagedRun& run, const HostComm& world);

}  // namespace hetseq::test
