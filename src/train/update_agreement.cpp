#include "hetseq/train/update_agreement.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"

namespace hetseq {

UpdateAgreement::UpdateAgreement(const HostComm& world, std::size_t loss_terms)
    : comm_{world.duplicate()},
      loss_terms_{loss_terms},
      values_(loss_terms + 1 + 2 * static_cast<std::size_t>(world.size())) {}

std::span<const double> UpdateAgreement::part(std::size_t singles, std::size_t lists) const {
    const auto ranks = static_cast<std::size_t>(comm_.size());
    return std::span(values_).subspan(loss_terms_ + singles + lists * ranks, ranks);
}

void UpdateAgreement::post(std::span<const double> weights,
                           std::exception_ptr failure,
                           const UpdateNotes& notes) {
    HETSEQ_ASSERT(!posted_);
    std::fill(values_.begin(), values_.end(), 0.0);
    failure_ = std::move(failure);
    if (!failure_)
        std::copy(weights.begin(), weights.end(), values_.begin());
    double* const failed = values_.data() + loss_terms_;
    double* const times = failed + 1;
    *failed = failure_ ? 1 : 0;
    times[comm_.rank()] = notes.compute_ms;
    std::copy(notes.allocation.begin(), notes.allocation.end(), times + comm_.size());
    pending_ = comm_.start_all_reduce(values_, ReduceOp::sum);
    posted_ = true;
}

void UpdateAgreement::wait() {
    pending_.wait();
    posted_ = false;
    if (values_[loss_terms_] > 0)
        agree(comm_, failure_);
}

std::optional<std::vector<std::int64_t>> UpdateAgreement::allocation() const {
    const std::span<const double> units = part(1, 1);
    if (std::all_of(units.begin(), units.end(), [](double u) { return u == 0; }))
        return std::nullopt;
    std::vector<std::int64_t> allocation;  // whole numbers far below 2^53: exact
    for (const double u : units)
        allocation.push_back(static_cast<std::int64_t>(u));
    return allocation;
}

}  // namespace hetseq
