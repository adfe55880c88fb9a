#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"

#include "cut_costs.hpp"
#include "message_times.hpp"

namespace hetseq {

/// Times and memory of all stages that a chain can be cut into. Times are rounded by
/// `rounded_ms`.
class ChainCosts {
public:
    /// `problem` outlives the costs.
    explicit ChainCosts(const ChainProblem& problem);

    const ChainProblem& problem() const noexcept { return problem_; }
    std::size_t units() const noexcept { return units_; }
    std::size_t classes() const noexcept { return problem_.devices.size(); }

    /// Of one micro-batch [ms].
    double forward_ms(const ChainStage& stage) const;
    double backward_ms(const ChainStage& stage) const;
    double stage_ms(const ChainStage& stage) const;
    /// The same without what messages take of it.
    double units_ms(const ChainStage& stage) const;

    /// A micro-batch's message across the boundary behind `unit`, from a device of class `front` to
    /// one of class `behind`, and the one back [ms].
    double activations_ms(std::size_t unit, std::size_t front, std::size_t behind) const {
        return boundary(unit, front, behind).activations_ms;
    }
    double gradients_ms(std::size_t unit, std::size_t front, std::size_t behind) const {
        return boundary(unit, front, behind).gradients_ms;
    }
    /// Of these messages.
    const BoundaryCards& cards(std::size_t unit, std::size_t front, std::size_t behind) const {
        return boundary(unit, front, behind).cards;
    }
    /// Part of a message's time that it takes of the card of `device_class`, where the other device
    /// is of class `other`: less than 1 where others of its links are faster.
    double card_part(std::size_t device_class, std::size_t other) const {
        return card_parts_[device_class * classes() + other];
    }

    double memory_mb(const ChainStage& stage, std::size_t in_flight) const;
    /// The most micro-batches in flight that the class's memory allows, no more than there are
    /// units; 0: none.
    std::size_t most_in_flight(const ChainStage& stage) const {
        return most_in_flight_[index(stage)];
    }

    CutCosts cut(std::span<const ChainStage> stages) const;

private:
    std::size_t index(const ChainStage& stage) const {
        return (stage.device_class * (units_ + 1) + stage.begin) * (units_ + 1) + stage.end;
    }
    struct Boundary {
        double activations_ms = 0, gradients_ms = 0;
        BoundaryCards cards = {};
    };

    const Boundary& boundary(std::size_t unit, std::size_t front, std::size_t behind) const {
        return boundaries_[(unit * classes() + front) * classes() + behind];
    }
    CutCosts::Sum sum(const TiedUnits& tied, std::span<const ChainStage> stages) const;
    double ring_ms(std::span<const ChainStage> stages,
                   const std::vector<std::size_t>& ring,
                   double mb) const;
    void add_times();
    void add_card_parts();
    void add_boundaries();
    void add_memory(std::size_t begin);
    void add_most_in_flight(const ChainStage& stage);

    const ChainProblem& problem_;
    std::size_t units_;
    std::vector<double> card_parts_;    // by class and other class
    std::vector<Boundary> boundaries_;  // by unit, front and behind
    // By class: sums over units before each.
    std::vector<std::vector<double>> forward_before_ms_, backward_before_ms_;
    // By `index`.
    std::vector<double> fixed_mb_;      // whatever is in flight
    std::vector<double> in_flight_mb_;  // for each micro-batch in flight
    std::vector<std::size_t> most_in_flight_;
};

}  // namespace hetseq
