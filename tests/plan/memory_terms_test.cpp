#include "hetseq/plan/memory_terms.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

constexpr std::int64_t million = std::int64_t{1} << 20;

double mb_of(const std::vector<MemoryTerm>& terms, const std::string& name) {
    for (const MemoryTerm& term : terms)
        if (term.name == name)
            return term.mb;
    ADD_FAILURE() << "there is no term " << name;
    return 0;
}

TEST(MemoryTermsTest, AdamOfAWholeModelTakes16BytesAParameter) {
    const auto terms = memory_terms({.elements = 100 * million, .state_tensors = 2},
                                    {.process_mb = 50, .state_elements = 100 * million});

    EXPECT_EQ(mb_of(terms, "values"), 400);
    EXPECT_EQ(mb_of(terms, "gradients"), 400);
    EXPECT_EQ(mb_of(terms, "state"), 800);
    EXPECT_EQ(sum_of(terms), 50 + 16 * 100);
}

TEST(MemoryTermsTest, APartOfTheStateAndCopiesIn16Bits) {
    const auto terms = memory_terms(
        {.elements = 100 * million, .element_bytes = 8, .state_tensors = 3, .sent_bytes = 2},
        {.state_elements = 10 * million, .cast_bytes = 2, .activations_mb = 7});

    EXPECT_EQ(mb_of(terms, "values"), 800);
    EXPECT_EQ(mb_of(terms, "state"), 240);
    EXPECT_EQ(mb_of(terms, "sent"), 200);
    EXPECT_EQ(mb_of(terms, "casts"), 200);
    EXPECT_EQ(mb_of(terms, "activations"), 7);
}

TEST(MemoryTermsTest, FrozenParametersAreValuesAlone) {
    const ModelMemory model{.elements = million, .frozen = 3 * million, .state_tensors = 2};

    const auto whole = memory_terms(model, {.state_elements = million, .cast_bytes = 2});
    const auto stage = memory_terms(model, {.elements = million / 2, .frozen = million});

    EXPECT_EQ(mb_of(whole, "values"), 16);
    EXPECT_EQ(mb_of(whole, "gradients"), 4);
    EXPECT_EQ(mb_of(whole, "state"), 8);
    EXPECT_EQ(mb_of(whole, "casts"), 8);
    EXPECT_EQ(mb_of(stage, "values"), 6);
    EXPECT_EQ(mb_of(stage, "gradients"), 2);
}

TEST(MemoryTermsTest, EachSetOfGradientsHasItsCopyThatIsSent) {
    const auto terms = memory_terms(
        {.elements = 100 * million, .gradient_sets = 3, .sent_bytes = 2}, RankMemory{});

    EXPECT_EQ(mb_of(terms, "values"), 400);
    EXPECT_EQ(mb_of(terms, "gradients"), 1200);
    EXPECT_EQ(mb_of(terms, "sent"), 600);
}

TEST(MemoryTermsTest, AreAddedUpInWords) {
    const auto terms = memory_terms({.elements = million, .state_tensors = 2},
                                    {.process_mb = 210.4, .state_elements = million / 2});

    EXPECT_EQ(memory_text(terms), "process 210 + values 4 + gradients 4 + state 4 = 222 MiB");
}

}  // namespace
}  // namespace hetseq
