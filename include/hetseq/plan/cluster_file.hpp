#pragma once

#include <string>
#include <string_view>

#include "hetseq/plan/cluster.hpp"

namespace hetseq {

/// Reads a description of a cluster (docs/planning.md has the format). `name` stands in messages.
/// Devices without times keep `has_times` false. Throws BadConfig that names the line.
Cluster parse_cluster(std::string_view text, const std::string& name);

/// Throws BadConfig if a device has no times, or if there are no nodes.
void require_complete(const Cluster& cluster);

}  // namespace hetseq
