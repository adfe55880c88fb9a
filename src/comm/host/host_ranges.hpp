#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// Host names in short, as Slurm writes them: {"gpu01", "gpu02", "gpu05", "big"} is
/// "gpu[01-02,05], big".
std::string host_ranges(const std::vector<std::string>& hosts);

}  // namespace hetseq
