#include "hetseq/model/chain.hpp"

namespace hetseq {

std::map<std::string, std::vector<std::size_t>> readers_by_parameter(
    const std::vector<ChainUnit>& chain) {
    std::map<std::string, std::vector<std::size_t>> readers;
    for (std::size_t unit = 0; unit < chain.size(); ++unit)
        for (const std::string& name : chain[unit].parameters)
            if (std::vector<std::size_t>& of_one = readers[name];
                of_one.empty() || of_one.back() != unit)
                of_one.push_back(unit);
    return readers;
}

}  // namespace hetseq
