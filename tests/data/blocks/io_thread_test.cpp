#include "hetseq/data/blocks/io_thread.hpp"

#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(IoThreadTest, RunsTasksInOrderOnOneOtherThread) {
    std::vector<int> order;
    std::vector<std::thread::id> ids;
    {
        IoThread thread{IoThreading::background};
        for (int i = 0; i < 5; ++i)
            thread.post([&, i] {
                order.push_back(i);
                ids.push_back(std::this_thread::get_id());
            });
    }
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_EQ(ids, std::vector<std::thread::id>(5, ids[0]));
    EXPECT_NE(ids[0], std::this_thread::get_id());
}

TEST(IoThreadTest, InlineRunsInTheCaller) {
    IoThread thread{IoThreading::inline_in_caller};

    EXPECT_EQ(thread.run([] { return std::this_thread::get_id(); }), std::this_thread::get_id());
}

TEST(IoThreadTest, RunHandsOnResultsAndExceptions) {
    IoThread thread{IoThreading::background};

    EXPECT_EQ(thread.run([] { return 7; }), 7);
    EXPECT_THROW(thread.run([] { throw std::runtime_error("no"); }), std::runtime_error);
}

TEST(IoThreadTest, UnwindingLeavesATaskBehindThatWaitsForOthers) {
    std::promise<void> started;
    std::promise<void> others;
    std::promise<bool> seen;
    bool left = false;
    try {
        IoThread thread{
            IoThreading::background,
            {.patience = std::chrono::milliseconds{20}, .left_behind = [&] { left = true; }}};
        thread.post([&, abandoned = thread.abandoned()] {
            started.set_value();
            others.get_future().wait();
            seen.set_value(abandoned());
        });
        started.get_future().wait();
        throw std::runtime_error("this rank fails alone");
    } catch (const std::runtime_error&) {
    }

    EXPECT_TRUE(left);
    others.set_value();
    EXPECT_TRUE(seen.get_future().get());
}

TEST(IoThreadTest, UnwindingWaitsForTasksThatGiveUp) {
    std::vector<bool> abandoned_tasks;
    bool left = false;
    try {
        IoThread thread{IoThreading::background, {.left_behind = [&] { left = true; }}};
        std::promise<void> started;
        thread.post([&, abandoned = thread.abandoned()] {
            started.set_value();
            while (!abandoned())
                std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
            abandoned_tasks.push_back(abandoned());
        });
        thread.post(
            [&, abandoned = thread.abandoned()] { abandoned_tasks.push_back(abandoned()); });
        started.get_future().wait();
        throw std::runtime_error("all ranks fail");
    } catch (const std::runtime_error&) {
    }

    EXPECT_EQ(abandoned_tasks, (std::vector<bool>{true, true}));
    EXPECT_FALSE(left);
}

}  // namespace
}  // namespace hetseq
