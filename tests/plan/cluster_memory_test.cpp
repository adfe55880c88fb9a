#include "hetseq/plan/cluster_memory.hpp"

#include <gtest/gtest.h>

#include "hetseq/plan/cluster_file.hpp"

namespace hetseq {
namespace {

// GPT-2 XL on a card of 16 GB and one of 80 GB.
Cluster two_cards(const std::string& job, const std::string& model = "") {
    return parse_cluster(
        "[device small]\nunit-ms = 4\nmemory-mib = 16384\n"
        "[device large]\nunit-ms = 1\nmemory-mib = 81920\nactivations-mib = 2000\n"
        "[nodes small]\n[nodes large]\n"
        "[model]\nparameters = 1557611200\n" +
            model + "[job]\nbatch = 8\n" + job,
        "cards.cfg");
}

double term(const NodeClassMemory& memory, const std::string& name) {
    for (const MemoryTerm& term : memory.terms)
        if (term.name == name)
            return term.mb;
    return -1;
}

TEST(ClusterMemoryTest, AWholeOrAnEvenStateDoesNotFitASmallCardAndOneByMemoryDoes) {
    const auto whole = plan_memory(two_cards(""));
    const auto even = plan_memory(two_cards("shard = optimizer\nshard-by = even\n"));
    const auto by_memory = plan_memory(two_cards("shard = optimizer\n"));

    ASSERT_EQ(whole.size(), 2u);
    EXPECT_NEAR(term(whole[0], "state"), 8 * 1485.45, 1);
    EXPECT_FALSE(whole[0].fits());
    EXPECT_TRUE(whole[1].fits());
    EXPECT_NEAR(term(even[0], "state"), 4 * 1485.45, 1);
    EXPECT_FALSE(even[0].fits());
    EXPECT_TRUE(by_memory[0].fits());
    EXPECT_TRUE(by_memory[1].fits());
    EXPECT_NEAR(term(by_memory[0], "state") + term(by_memory[1], "state"), 8 * 1485.45, 1);
    // 0.9 of 16,384 less 11,884 for values and gradients, beside the same of 81,920 less 2,000
    // more.
    const double small = 0.9 * 16384 - 8 * 1485.45, large = 0.9 * 81920 - 8 * 1485.45 - 2000;
    EXPECT_NEAR(term(by_memory[0], "state"), 8 * 1485.45 * small / (small + large), 1);
    EXPECT_EQ(term(by_memory[1], "activations"), 2000);
}

TEST(ClusterMemoryTest, TheStateIsTheOptimizers) {
    EXPECT_EQ(term(plan_memory(two_cards("", "state-tensors = 0\n"))[0], "state"), 0);
    EXPECT_NEAR(
        term(plan_memory(two_cards("", "state-tensors = 3\n"))[0], "state"), 12 * 1485.45, 1);
}

TEST(ClusterMemoryTest, DevicesThatSayNothingAreLeftOut) {
    EXPECT_TRUE(plan_memory(parse_cluster("[device d]\nunit-ms = 1\nmemory-mib = 5\n[nodes d]\n"
                                          "[job]\nbatch = 1\n",
                                          "no-model.cfg"))
                    .empty());
    EXPECT_TRUE(plan_memory(parse_cluster("[device d]\nunit-ms = 1\n[nodes d]\n[model]\n"
                                          "parameter-bytes = 400\n[job]\nbatch = 1\n",
                                          "no-memory.cfg"))
                    .empty());
}

}  // namespace
}  // namespace hetseq
