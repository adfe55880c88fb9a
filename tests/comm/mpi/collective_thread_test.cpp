#include "comm/mpi/collective_thread.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
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
    std::shared_ptr<CollectiveResult> last;

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

    const auto result = thread.enqueue([&] { gate.get_future().wait(); });
    EXPECT_FALSE(result->done());
    gate.set_value();
    result->wait();

    EXPECT_TRUE(result->done());
}

// Whoever runs them: one at a time, in order.
TEST(CollectiveThreadOrderTest, TheWaiterRunsWhatTheThreadHasNotBegun) {
    for (int round = 0; round < 200; ++round) {
        CollectiveThread thread{RunOn::own_thread};
        std::vector<int> order;
        std::atomic<int> running = 0, most_running = 0;
        std::shared_ptr<CollectiveResult> last;
        for (int i = 0; i < 20; ++i)
            last = thread.enqueue([&, i] {
                most_running = std::max(most_running.load(), ++running);
                order.push_back(i);
                --running;
            });

        thread.finish(*last);

        EXPECT_TRUE(last->done());
        ASSERT_EQ(order.size(), 20U);
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
        EXPECT_EQ(most_running, 1);
    }
}

TEST(CollectiveThreadOrderTest, TheWaiterWaitsForWhatTheThreadHasBegun) {
    std::promise<void> begun, gate;
    CollectiveThread thread{RunOn::own_thread};
    const auto first = thread.enqueue([&] {
        begun.set_value();
        gate.get_future().wait();
    });
    begun.get_future().wait();
    std::thread::id runner;
    const auto second = thread.enqueue([&] { runner = std::this_thread::get_id(); });

    std::thread opener([&] { gate.set_value(); });
    thread.finish(*first);
    thread.finish(*second);
    opener.join();

    EXPECT_NE(runner, std::thread::id());
}

TEST(CollectiveThreadOrderTest, AWaiterThatRunsOneGetsItsException) {
    CollectiveThread thread{RunOn::own_thread};

    const auto bad = thread.enqueue([] { throw std::runtime_error("lost a peer"); });
    const auto later = thread.enqueue([] {});

    EXPECT_THROW(thread.finish(*bad), std::runtime_error);
    EXPECT_THROW(thread.finish(*later), std::runtime_error);
}

}  // namespace
}  // namespace hetseq
