// Readers that are abandoned, alone and by all ranks of a host.
#include "hetseq/data/blocks/reader_meeting.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/loading/loader.hpp"

#include "data/epoch_reader.hpp"
#include "data/generated_corpus.hpp"
#include "test_world.hpp"

namespace hetseq {

namespace {

using std::chrono::milliseconds;

std::atomic<int> block_delay_ms{0};

}  // namespace

// In place of the one that does nothing: makes each block's read slow.
void fault_point(const char* name, std::int64_t) {
    if (std::strcmp(name, "io_thread") == 0)
        std::this_thread::sleep_for(milliseconds{block_delay_ms});
}

namespace {

std::ptrdiff_t threads_of_this_process() {
    using iterator = std::filesystem::directory_iterator;
    return std::distance(iterator{"/proc/self/task"}, iterator{});
}

class ReaderMeetingTest : public testing::Test {
protected:
    ReaderMeetingTest() { block_delay_ms = 10; }
    ~ReaderMeetingTest() override { block_delay_ms = 0; }

    bool is_first() const { return world_.rank() == 0; }
    bool is_last() const { return world_.rank() == world_.size() - 1; }

    // Asks for an epoch of 29 blocks, takes its first batch, does `before_throwing` and unwinds
    // while the blocks are being read.
    template <class Function>
    void abandon_a_reader(Function&& before_throwing) {
        try {
            DataContext context{world_, true};
            Corpus corpus{context,
                          folder_.path(),
                          test::bert_like_schema(),
                          {.shuffle_blocks = 2, .block_length = 7, .cache_mb = 1}};
            test::BatchReader reader{world_, corpus, test::BatchReader::options(), 10};
            for (std::int64_t k = 0; k < reader.batches_per_epoch(); ++k)
                reader.request();
            reader.take();
            before_throwing();
            throw std::runtime_error("on purpose");
        } catch (const std::runtime_error&) {
        }
    }

    // A thread that has ended stays in /proc for a moment.
    static std::ptrdiff_t threads_once_at_most(std::ptrdiff_t expected) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{3};
        while (threads_of_this_process() > expected && std::chrono::steady_clock::now() < deadline)
            std::this_thread::sleep_for(milliseconds{5});
        return threads_of_this_process();
    }

    HostComm world_ = test::world();
    test::SharedFolder folder_{world_};
    const std::int64_t samples_ = test::write_bert_like_corpus(world_, folder_, {120, 80});
};

TEST_F(ReaderMeetingTest, NoReaderIsLeftWhereOneRankUnwindsLater) {
    const auto threads = threads_of_this_process();

    abandon_a_reader([&] {
        if (is_last())
            std::this_thread::sleep_for(milliseconds{50});
    });

    EXPECT_LE(threads_once_at_most(threads), threads);
}

TEST_F(ReaderMeetingTest, TheReaderOfARankThatFailsAloneStops) {
    const auto threads = threads_of_this_process();

    abandon_a_reader([&] {
        if (!is_first())
            world_.barrier();
    });
    if (is_first()) {
        EXPECT_LE(threads_once_at_most(threads), threads);
        world_.barrier();
    }

    EXPECT_LE(threads_once_at_most(threads), threads);
}

TEST_F(ReaderMeetingTest, AllGoOnUntilOneIsAbandoned) {
    bool abandoned = false;
    ReaderMeeting meeting{std::make_shared<HostComm>(world_.duplicate()),
                          [&] { return abandoned; }};

    EXPECT_TRUE(meeting.all_go_on());
    EXPECT_TRUE(meeting.all_go_on());
    abandoned = is_last();
    EXPECT_FALSE(meeting.all_go_on());
    abandoned = false;
    EXPECT_FALSE(meeting.all_go_on());
}

TEST_F(ReaderMeetingTest, AnAbandonedReaderDoesNotWaitForPeersThatNeverCome) {
    ReaderMeeting meeting{std::make_shared<HostComm>(world_.duplicate()),
                          [&] { return is_first(); },
                          milliseconds{20}};

    if (is_first()) {
        EXPECT_FALSE(meeting.all_go_on());
    }
    world_.barrier();
    if (!is_first()) {
        EXPECT_FALSE(meeting.all_go_on());
    }
}

}  // namespace
}  // namespace hetseq
