#include "hetseq/train/update_agreement.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"

namespace hetseq {

UpdateAgreement::UpdateAgreement(const HostComm& world, std::size_t loss_terms)
    : comm_{world.duplicate()}, loss_terms_{loss_terms}, values_(loss_terms + 1) {}

void UpdateAgreement::post(std::span<const double> weights, std::exception_ptr failure) {
    HETSEQ_ASSERT(!posted_);
    std::fill(values_.begin(), values_.end(), 0.0);
    failure_ = std::move(failure);
    if (failure_)
        values_.back() = 1;
    else
        std::copy(weights.begin(), weights.end(), values_.begin());
    pending_ = comm_.start_all_reduce(values_, ReduceOp::sum);
    posted_ = true;
}

void UpdateAgreement::wait() {
    pending_.wait();
    posted_ = false;
    if (values_.back() > 0)
        agree(comm_, failure_);
}

}  // namespace hetseq
