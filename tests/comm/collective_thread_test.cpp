#include "collective_thread.hpp"

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pthread.h>

namespace hetseq {
namespace {

class CollectiveThreadTest : public testing::TestWithParam<RunOn> {};

INSTANTIATE_TEST_SUITE_P(Threads,
                         CollectiveThreadTest,
                         testing::Values(RunOn::own_thread, RunOn::caller));

TEST_P(CollectiveThreadTest, RunsInOrder) {
    std::vector<int> order;
    CollectiveThread thread{GetParam()};
    std::shared_ptr<Outcome> last;

    for (int i = 0; i < 100; ++i)
        last = thread.enqueue([&order, i] { order.push_back(i); });
    last->wait();

    ASSERT_EQ(order.size(), 100U);
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(order[std::size_t(i)], i);
}

TEST_P(CollectiveThreadTest, TheWaiterGetsTheException) {
    CollectiveThread thread{GetParam()};

    const auto good = thread.enqueue([] {});
    const auto bad = thread.enqueue([] { throw std::runtime_error("lost a peer"); });

    EXPECT_NO_THROW(good->wait());
    EXPECT_THROW(bad->wait(), std::runtime_error);
    EXPECT_TRUE(bad->done());
}

TEST_P(CollectiveThreadTest, NothingRunsAfterAFailure) {
    CollectiveThread thread{GetParam()};
    bool ran = false;

    thread.enqueue([] { throw std::runtime_error("lost a peer"); });
    const auto later = thread.enqueue([&] { ran = true; });

    EXPECT_THROW(later->wait(), std::runtime_error);
    EXPECT_FALSE(ran);
}

TEST_P(CollectiveThreadTest, DestructionFinishesWhatIsQueued) {
    int ran = 0;

    {
        CollectiveThread thread{GetParam()};
        for (int i = 0; i < 10; ++i)
            thread.enqueue([&] { ++ran; });
    }

    EXPECT_EQ(ran, 10);
}

TEST(CollectiveThreadNameTest, ItsThreadHasAName) {
    CollectiveThread thread{RunOn::own_thread};
    char name[16] = "";

    thread.enqueue([&] { pthread_getname_np(pthread_self(), name, sizeof name); })->wait();

    EXPECT_STREQ(name, "hetseq-reduce");
}

TEST(CollectiveThreadOrderTest, IsNotDoneBeforeItHasRun) {
    std::promise<void> gate;
    CollectiveThread thread{RunOn::own_thread};

    const auto outcome = thread.enqueue([&] { gate.get_future().wait(); });
    EXPECT_FALSE(outcome->done());
    gate.set_value();
    outcome->wait();

    EXPECT_TRUE(outcome->done());
}

}  // namespace
}  // namespace hetseq
