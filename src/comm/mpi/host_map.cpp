#include "host_map.hpp"

#include <algorithm>
#include <map>

namespace hetseq {

HostMap::HostMap(const std::vector<int>& host_of_rank) {
    std::map<int, int> numbers;
    for (const int name : host_of_rank) {
        const auto [place, is_new] = numbers.emplace(name, hosts());
        if (is_new)
            ranks_on_.emplace_back();
        ranks_on_[static_cast<std::size_t>(place->second)].push_back(ranks());
        host_of_.push_back(place->second);
    }
}

int HostMap::largest_host() const noexcept {
    std::size_t most = 0;
    for (const auto& ranks : ranks_on_)
        most = std::max(most, ranks.size());
    return static_cast<int>(most);
}

}  // namespace hetseq
