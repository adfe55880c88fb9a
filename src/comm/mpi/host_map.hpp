#pragma once

#include <cstddef>
#include <vector>

namespace hetseq {

/// Which ranks share a host.
class HostMap {
public:
    /// `host_of_rank`: any number for a host, the same for its ranks alone. Hosts are numbered
    /// from 0, in the order of their lowest ranks.
    explicit HostMap(const std::vector<int>& host_of_rank);

    int ranks() const noexcept { return static_cast<int>(host_of_.size()); }
    int hosts() const noexcept { return static_cast<int>(ranks_on_.size()); }
    int host_of(int rank) const { return host_of_.at(static_cast<std::size_t>(rank)); }
    /// Ascending.
    const std::vector<int>& ranks_on(int host) const {
        return ranks_on_.at(static_cast<std::size_t>(host));
    }
    int largest_host() const noexcept;  // its ranks

private:
    std::vector<int> host_of_;
    std::vector<std::vector<int>> ranks_on_;
};

}  // namespace hetseq
