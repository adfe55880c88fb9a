#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hetseq/state/evaluation.hpp"

namespace hetseq {

class HostComm;

enum class Direction { min, max };

/// Which validation is the best: the one whose `name` is the lowest or the highest. "loss" is the
/// sum of the loss terms, other names are a term's or a metric's.
struct BestBy {
    std::string name = "loss";
    Direction direction = Direction::min;
};

/// "accuracy:max"
std::string to_string(const BestBy& best_by);
/// Throws BadConfig unless `text` is NAME:min or NAME:max.
BestBy parse_best_by(const std::string& text);

/// `names`: of the model's loss terms, metrics and scores. Throws BadConfig that lists them and
/// "loss" if `best_by` has another name.
void check_best_by(const BestBy& best_by, std::vector<std::string> names);

/// Says, for a warning, what is wrong with an evaluation that cannot be the best; empty if nothing
/// is.
std::string why_never_best(const Evaluation& evaluation, const BestBy& best_by);

/// Whether `evaluation` is better than `best`. An evaluation that is not finite, or has no such
/// name, is never better; any other one is better than it.
bool is_better(const Evaluation& evaluation,
               const std::optional<Evaluation>& best,
               const BestBy& best_by);
/// Collective. Returns rank 0's answer, since MPI does not promise that all ranks get the same bits
/// of a sum.
bool is_better(const HostComm& world,
               const Evaluation& evaluation,
               const std::optional<Evaluation>& best,
               const BestBy& best_by);

}  // namespace hetseq
