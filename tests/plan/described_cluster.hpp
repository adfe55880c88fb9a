#pragma once

#include <string>

#include "hetseq/plan/cluster_file.hpp"

namespace hetseq {

/// Like nodes of one GPU that takes 1 ms a unit; more lines of the description may follow.
inline Cluster like_nodes(int count, const std::string& more) {
    return parse_cluster("[device d]\nunit-ms = 1\n[nodes n]\ndevice = d\ncount = " +
                             std::to_string(count) + "\n" + more,
                         "test.cfg");
}

}  // namespace hetseq
