#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

/// The one small host reduction of an update: the global weights of its loss terms, and whether
/// every rank has its share. Posted when the share is loaded, complete before the first backward.
class UpdateAgreement {
public:
    /// Collective over `world`.
    UpdateAgreement(const HostComm& world, std::size_t loss_terms);

    /// Collective, returns at once. `weights`: of this rank's share, by loss term. `failure`: what
    /// kept this rank from having its share, or null.
    void post(std::span<const double> weights, std::exception_ptr failure);
    /// Waits for what was posted. Where any rank failed, all throw what it met.
    void wait();

    /// W_j of the update, by loss term; valid after `wait`.
    std::span<const double> weights() const noexcept { return {values_.data(), loss_terms_}; }

private:
    HostComm comm_;
    std::size_t loss_terms_;
    std::vector<double> values_;  // weights by loss term, then the number of ranks that failed
    std::exception_ptr failure_;
    Pending pending_;
    bool posted_ = false;
};

}  // namespace hetseq
