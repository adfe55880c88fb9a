#pragma once

#include <cstdint>
#include <exception>
#include <optional>

namespace hetseq {

class HostComm;

/// A failure in a piece of work that ranks share, with the piece's place in the order in which a
/// single process would have met it.
struct OrderedFailure {
    std::int64_t place = 0;
    std::exception_ptr error;
};

/// Collective. If any rank brings a failure, all ranks throw the failure that comes first in order.
/// So the message does not depend on how the work was spread.
void agree_on_first(const HostComm& comm, const std::optional<OrderedFailure>& failure);

}  // namespace hetseq
