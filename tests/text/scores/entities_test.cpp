#include "hetseq/text/scores/entities.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

const TagSet& tags() {
    static const TagSet set{{"O", "B-A", "I-A", "B-B", "I-B"}, "tags"};
    return set;
}

TEST(EntitiesTest, AnInsideThatFollowsNothingBeginsAnEntityUnlessStrict) {
    const std::vector<std::int32_t> sentence{2, 2, 0, 1, 4};  // I-A I-A O B-A I-B

    EXPECT_EQ(tags().entities(sentence, EntityMode::lenient),
              (std::vector<Entity>{{0, 2, 0}, {3, 4, 0}, {4, 5, 1}}));
    EXPECT_EQ(tags().entities(sentence, EntityMode::strict), (std::vector<Entity>{{3, 4, 0}}));
}

TEST(EntitiesTest, ABeginDividesEntitiesOfOneType) {
    const std::vector<std::int32_t> sentence{1, 2, 1, 1};  // B-A I-A B-A B-A

    for (const EntityMode mode : {EntityMode::lenient, EntityMode::strict})
        EXPECT_EQ(tags().entities(sentence, mode),
                  (std::vector<Entity>{{0, 2, 0}, {2, 3, 0}, {3, 4, 0}}));
}

TEST(EntitiesTest, RefusesWhatIsNoTag) {
    EXPECT_THROW(TagSet({"O", "Disease"}, "tags"), BadData);
    EXPECT_THROW(TagSet({"O", "B-"}, "tags"), BadData);
    EXPECT_THROW(TagSet({"B-A", "B-A"}, "tags"), BadData);
    EXPECT_THROW(TagSet({}, "tags"), BadData);
}

/// Tags as one text a sentence.
std::vector<std::int32_t> numbers(const nlohmann::json& names, const std::string& sentence) {
    std::vector<std::int32_t> found;
    std::istringstream words{sentence};
    for (std::string word; words >> word;)
        found.push_back(
            static_cast<std::int32_t>(std::find(names.begin(), names.end(), word) - names.begin()));
    return found;
}

TEST(EntitiesTest, ScoresAreSeqevals) {
    const auto root = nlohmann::json::parse(std::ifstream("tests/reference/entities.json"));
    const auto names = root["tags"].get<std::vector<std::string>>();
    const TagSet set{names, "entities.json"};
    ASSERT_GE(root["cases"].size(), 30U);
    for (const auto& reference : root["cases"])
        for (const auto& [mode, name] :
             {std::pair{EntityMode::lenient, "lenient"}, std::pair{EntityMode::strict, "strict"}}) {
            EntityCounts counts;
            for (std::size_t i = 0; i < reference["expected"].size(); ++i)
                count_entities(set,
                               numbers(root["tags"], reference["expected"][i]),
                               numbers(root["tags"], reference["predicted"][i]),
                               mode,
                               counts);

            EXPECT_NEAR(counts.precision(), reference[name][0].get<double>(), 1e-12) << reference;
            EXPECT_NEAR(counts.recall(), reference[name][1].get<double>(), 1e-12) << reference;
            EXPECT_NEAR(counts.f1(), reference[name][2].get<double>(), 1e-12) << reference;
        }
}

}  // namespace
}  // namespace hetseq
