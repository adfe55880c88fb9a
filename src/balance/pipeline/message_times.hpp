#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"
#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

namespace hetseq {

/// What messages across a boundary take of the cards of both sides' hosts [ms]; nothing within one
/// host.
struct BoundaryCards {
    double front_out = 0, front_in = 0;
    double behind_out = 0, behind_in = 0;
};

/// To a multiple of 2^-20 ms: sums are then exact, and cuts that take equally long tie in whatever
/// order they are added up.
double rounded_ms(double ms);

/// Of `mb` MiB [ms], rounded.
double message_ms(const ChainLink& link, double mb);

/// What the messages of a stage take of its device's computing, with a forward and with a backward
/// [ms], rounded.
double forward_messages_ms(const ChainProblem& problem, const ChainStage& stage);
double backward_messages_ms(const ChainProblem& problem, const ChainStage& stage);

/// Of messages that pass over cards, rounded.
BoundaryCards cards_of(const PipelineLink& messages);

/// [ms / MiB]
double slower_way(const ChainLink& there, const ChainLink& back);

/// Part of a message's time that it takes of a host's card, over a link of `own` where the card's
/// fastest has `fastest` [ms / MiB]; infinity: it has no other.
double card_part_of(double own, double fastest);

/// Whether all devices of classes a and b are on one host.
inline bool share_a_host(const std::vector<ChainDevices>& devices, std::size_t a, std::size_t b) {
    return devices[a].host && devices[a].host == devices[b].host;
}

/// The fastest way from a device of class `own` to one of another host [ms / MiB], `way(own, c)` to
/// class c; infinity: there is none. `counts`: devices by class; of `own` there is one.
template <class Way>
double fastest_way(const std::vector<ChainDevices>& devices,
                   const std::vector<std::size_t>& counts,
                   std::size_t own,
                   const Way& way) {
    double fastest = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < devices.size(); ++c)
        if (counts[c] > (c == own ? 1U : 0U) && !share_a_host(devices, own, c))
            fastest = std::min(fastest, way(own, c));
    return fastest;
}

}  // namespace hetseq
