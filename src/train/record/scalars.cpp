#include "scalars.hpp"

#include <set>
#include <string>

#include "hetseq/util/rank_time.hpp"

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

void add_by_rank(const Json& line,
                 const std::string& key,
                 const std::string& group,
                 std::vector<Scalar>& to) {
    const auto values = line.find(key);
    if (values == line.end())
        return;
    int rank = 0;
    for (const Json& value : *values)
        if (const std::string tag = group + "/rank-" + std::to_string(rank++); value.is_number())
            to.push_back({tag, value.get<double>()});
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
    for (const RankTimeText& text : rank_time_texts)
        add_by_rank(line, rank_time_key(text), std::string(text.key), scalars);
    return scalars;
}

}  // namespace hetseq
