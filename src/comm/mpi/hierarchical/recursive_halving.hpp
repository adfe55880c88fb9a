#pragma once

#include <vector>

namespace hetseq {

/// What one host exchanges with `host`: the parts of the values that belong to the hosts
/// [begin, end).
struct HostExchange {
    int host = 0;
    int begin = 0;
    int end = 0;
};

/// One level of recursive halving, as one host sees it. It gives sums of what belongs to the other
/// half of its group, and gets those of what belongs to its own half.
struct HalvingLevel {
    std::vector<HostExchange> gives;
    std::vector<HostExchange> gets;  // added in this order
};

/// The reduce-scatter of `hosts` by recursive halving, level by level, as `host` sees it: at its
/// end each host has the sum of what belongs to it. Backwards, with `gives` received and `gets`
/// sent, it is the all-gather. (Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective
/// Communication Operations in MPICH", section 4.5.)
///
/// The lower half of a group of n hosts has ceil(n / 2). Its host i exchanges with host i of the
/// upper half. Where n is odd, the last host of the lower half has no partner: it gives each host
/// of the upper half only what belongs to that one, and gets nothing. So no link carries much more
/// than with a power of two, for which others fold the surplus hosts and send everything twice.
std::vector<HalvingLevel> halving_levels_of(int host, int hosts);

}  // namespace hetseq
