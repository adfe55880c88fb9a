#include "scalars.hpp"

#include <set>
#include <string>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

void add_by_rank(const Json& line, const char* key, const char* group, std::vector<Scalar>& to) {
    const auto values = line.find(key);
    if (values == line.end())
        return;
    int rank = 0;
    for (const Json& value : *values)
        to.push_back({std::string(group) + "/rank-" + std::to_string(rank++), value.get<double>()});
}

}  // namespace

std::vector<Scalar> scalars_of(const Json& line) {
    static const std::set<std::string> no_curve{"update", "samples", "units"};
    const auto kind = line.at("kind").get<std::string>();
    std::vector<Scalar> scalars;
    if (kind == "event")
        return scalars;
    for (const auto& [key, value] : line.items())
        if (value.is_number() && no_curve.count(key) == 0)
            scalars.push_back({kind + "/" + key, value.get<double>()});
    add_by_rank(line, "allocation", "units", scalars);
    add_by_rank(line, "rank_compute_ms", "compute_ms", scalars);
    return scalars;
}

}  // namespace hetseq
