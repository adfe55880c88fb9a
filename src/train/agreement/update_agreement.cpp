#include "hetseq/train/agreement/update_agreement.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/data/order/tiling.hpp"

#include "cut_mismatch.hpp"

namespace hetseq {

namespace {

constexpr std::size_t requests_end = 6;  // whether this rank failed, and its requests
constexpr std::size_t single_notes = requests_end + Tiling::terms;

}  // namespace

UpdateAgreement::UpdateAgreement(const HostComm& world, std::size_t loss_terms)
    : comm_{world.duplicate()},
      loss_terms_{loss_terms},
      values_(loss_terms + single_notes + 4 * static_cast<std::size_t>(world.size())) {}

std::span<const double> UpdateAgreement::by_rank(std::size_t list) const {
    const auto ranks = static_cast<std::size_t>(comm_.size());
    return std::span(values_).subspan(loss_terms_ + single_notes + list * ranks, ranks);
}

void UpdateAgreement::post(std::span<const double> weights,
                           std::exception_ptr failure,
                           const UpdateNotes& notes) {
    HETSEQ_ASSERT(!posted_);
    std::fill(values_.begin(), values_.end(), 0.0);
    failure_ = std::move(failure);
    double* const failed = values_.data() + loss_terms_;
    if (!failure_) {
        batch_ = notes.batch;
        slice_ = notes.slice;
        std::copy(weights.begin(), weights.end(), values_.begin());
        const auto tiling = Tiling(batch_, slice_, comm_.rank() == 0).values();
        std::copy(tiling.begin(), tiling.end(), failed + requests_end);
    }
    double* const times = failed + single_notes;
    const Requests& requests = notes.requests;
    failed[0] = failure_ ? 1 : 0;
    failed[1] = requests.signal;
    failed[2] = requests.stop_file;
    failed[3] = requests.time_limit;
    failed[4] = requests.save_signal;
    failed[5] = requests.save_clock;
    times[comm_.rank()] = notes.compute_ms;
    std::copy(notes.allocation.begin(), notes.allocation.end(), times + comm_.size());
    times[2 * comm_.size() + comm_.rank()] = static_cast<double>(notes.micro_batch);
    times[3 * comm_.size() + comm_.rank()] = notes.update_ms;
    pending_ = comm_.start_all_reduce(values_, ReduceOp::sum);
    posted_ = true;
}

void UpdateAgreement::wait() {
    pending_.wait();
    posted_ = false;
    if (values_[loss_terms_] > 0)
        agree(comm_, failure_);
    if (!Tiling::holds(std::span(values_).subspan(loss_terms_ + requests_end, Tiling::terms)))
        throw_cut_mismatch(comm_, batch_, slice_);
}

Requests UpdateAgreement::requests() const {
    const double* const sums = values_.data() + loss_terms_ + 1;
    return {.signal = sums[0],
            .stop_file = sums[1],
            .time_limit = sums[2],
            .save_signal = sums[3],
            .save_clock = sums[4]};
}

std::optional<std::vector<std::int64_t>> UpdateAgreement::allocation() const {
    const std::span<const double> units = by_rank(1);
    if (std::all_of(units.begin(), units.end(), [](double u) { return u == 0; }))
        return std::nullopt;
    std::vector<std::int64_t> allocation;  // whole numbers far below 2^53: exact
    for (const double u : units)
        allocation.push_back(static_cast<std::int64_t>(u));
    return allocation;
}

}  // namespace hetseq
