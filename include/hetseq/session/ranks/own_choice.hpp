#pragma once

#include <string>

#include "hetseq/comm/agree.hpp"
#include "hetseq/session/ranks/by_rank.hpp"

namespace hetseq {

/// Collective. Warns once of the ranks that more than one entry of their --`option` names.
/// `entries` are this rank's `competing_entries`.
void warn_of_competing_entries(const HostComm& world,
                               const std::string& option,
                               const std::string& entries);

/// Collective. What --`option` says of this rank, which is at `place`; ranks may have lists of
/// their own. Warns as above. Throws BadConfig on all ranks where one has no entry.
template <class T>
T own_choice(const HostComm& world,
             const std::string& option,
             const ByRank<T>& list,
             const RankPlace& place) {
    const T choice = agree_on(world, [&] { return value_of_rank(option, list, place); });
    warn_of_competing_entries(world, option, list.competing_entries(place));
    return choice;
}

}  // namespace hetseq
