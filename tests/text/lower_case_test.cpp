#include "hetseq/text/lower_case.hpp"

#include <map>

#include <gtest/gtest.h>

#include "text/bleu_reference.hpp"

namespace hetseq {
namespace {

TEST(LowerCaseTest, IsPythonsForAllCharactersOfUnicode13) {
    const nlohmann::json& characters = bleu_reference().at("characters");
    std::map<char32_t, std::u32string> lower;
    for (const auto& row : characters.at("lower"))
        for (std::size_t i = 1; i < row.size(); ++i)
            lower[row.at(0).get<char32_t>()] += row.at(i).get<char32_t>();
    const auto runs = characters.at("classes").get<std::vector<std::pair<char32_t, std::string>>>();

    for (std::size_t i = 0; i < runs.size(); ++i) {
        const char32_t end = i + 1 < runs.size() ? runs[i + 1].first : 0x110000;
        for (char32_t c = runs[i].first; runs[i].second != "unassigned" && c < end; ++c) {
            const std::u32string text(1, c);
            const auto changed = lower.find(c);
            ASSERT_EQ(lower_case(text), changed == lower.end() ? text : changed->second)
                << "U+" << std::hex << static_cast<unsigned>(c);
        }
    }
}

TEST(LowerCaseTest, SigmaIsFinalWherePythonHasIt) {
    const auto runs = bleu_reference()
                          .at("characters")
                          .at("final_sigma")
                          .get<std::vector<std::pair<char32_t, int>>>();
    const auto classes = bleu_reference()
                             .at("characters")
                             .at("classes")
                             .get<std::vector<std::pair<char32_t, std::string>>>();
    std::size_t run = 0;
    for (std::size_t i = 0; i < classes.size(); ++i) {
        const char32_t end = i + 1 < classes.size() ? classes[i + 1].first : 0x110000;
        for (char32_t c = classes[i].first; classes[i].second != "unassigned" && c < end; ++c) {
            while (run + 1 < runs.size() && runs[run + 1].first <= c)
                ++run;
            const bool after_it = lower_case(std::u32string{c, U'Σ'}).back() == U'ς';
            const bool after_a_letter_and_it =
                lower_case(std::u32string{U'A', c, U'Σ'}).back() == U'ς';
            ASSERT_EQ((after_it ? 1 : 0) + (after_a_letter_and_it ? 2 : 0), runs[run].second)
                << "U+" << std::hex << static_cast<unsigned>(c);
        }
    }
}

TEST(LowerCaseTest, SigmaIsFinalBeforeWhatIsNoLetter) {
    EXPECT_EQ(lower_case(U"ΟΔΟΣ ΣΑΣ"), U"οδος σας");
    EXPECT_EQ(lower_case(U"ΑΣ'Α ΑΣ' Α"), U"ασ'α ας' α");
    EXPECT_EQ(lower_case(U"İ"), U"i\u0307");
}

}  // namespace
}  // namespace hetseq
