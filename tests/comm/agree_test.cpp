#include "hetseq/comm/agree.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Caught {
    ExitCode code = ExitCode::finished;
    std::string text;
};

template <class Function>
Caught caught_from(const HostComm& comm, Function&& local) {
    try {
        agree_on(comm, std::forward<Function>(local));
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    return {};
}

TEST(AgreeTest, WithoutFailureReturnsTheLocalValue) {
    const HostComm world = test::world();

    const int value = agree_on(world, [&] { return 10 * world.rank(); });

    EXPECT_EQ(value, 10 * world.rank());
}

TEST(AgreeTest, OneRanksFailureIsThrownOnAllWithItsNumber) {
    const HostComm world = test::world();
    const int failing = world.size() - 1;

    const Caught caught = caught_from(world, [&] {
        if (world.rank() == failing)
            throw BadData("a.h5 is not an HDF5 file", "its first bytes are wrong", "see docs");
    });

    EXPECT_EQ(caught.code, ExitCode::bad_data);
    EXPECT_THAT(caught.text,
                StartsWith("a.h5 is not an HDF5 file (its first bytes are wrong): see"));
    if (world.size() > 1) {
        EXPECT_THAT(caught.text, HasSubstr("[rank " + std::to_string(failing) + " on "));
    }
    const auto texts = world.all_gather(caught.text);
    for (const std::string& text : texts)
        EXPECT_EQ(text, caught.text);
}

TEST(AgreeTest, AFailureOfAllRanksAlikeNamesNoRank) {
    const HostComm world = test::world();

    const Caught caught =
        caught_from(world, [] { throw MissingInput("no file b.h5", "", "give --data"); });

    EXPECT_EQ(caught.code, ExitCode::missing_input);
    EXPECT_EQ(caught.text, "no file b.h5: give --data");
}

TEST(AgreeTest, UnlikeFailuresGiveTheLowestRanksAndNameIt) {
    const HostComm world = test::world();

    const Caught caught = caught_from(world, [&] {
        if (world.rank() == 0)
            throw IoError("disk is full");
        throw BadData("row " + std::to_string(world.rank()) + " is bad");
    });

    EXPECT_EQ(caught.code, ExitCode::io);
    EXPECT_THAT(caught.text, StartsWith("disk is full"));
    if (world.size() > 1) {
        EXPECT_THAT(caught.text, HasSubstr("[rank 0 on "));
    }
}

TEST(AgreeTest, AllRanksThatFailedAlikeAreNamed) {
    const HostComm world = test::world();
    const std::vector<std::string> expected{"", "[rank 1 on ", "[ranks 1, 2]", "[ranks 1-3]"};
    ASSERT_LE(world.size(), 4);

    const Caught caught = caught_from(world, [&] {
        if (world.rank() != 0)
            throw IoError("disk is full");
    });

    EXPECT_THAT(caught.text, HasSubstr(expected[std::size_t(world.size()) - 1]));
    EXPECT_EQ(caught.text.empty(), world.size() == 1);
}

TEST(AgreeTest, RanksOfAPartHaveTheirNumbersInTheJob) {
    const HostComm world = test::world();
    const bool is_odd = world.rank() % 2 == 1;
    HostComm part = world.split(is_odd ? 1 : 0);
    ASSERT_EQ(part.number_of(part.rank()), world.rank());
    ASSERT_EQ(part.duplicate().number_of(part.rank()), world.rank());
    ASSERT_EQ(part.split_by_host().number_of(part.rank()), world.rank());
    const auto fail_in_last = [&] {
        return caught_from(part, [&] {
            if (part.rank() == part.size() - 1)
                throw IoError("disk is full");
        });
    };

    if (part.size() > 1) {
        const std::string last = std::to_string(part.number_of(part.size() - 1));
        EXPECT_EQ(last, is_odd ? "3" : "2");
        EXPECT_THAT(fail_in_last().text, HasSubstr("[rank " + last + " on "));
    }
    part.become_job();
    if (part.size() > 1)
        EXPECT_THAT(fail_in_last().text, HasSubstr("[rank 1 on "));
}

TEST(AgreeTest, AnAgreedFailureIsNotNamedTwice) {
    const HostComm world = test::world();
    const auto fail = [&] {
        agree_on(world, [&] {
            if (world.rank() == 0)
                throw IoError("disk is full");
        });
    };
    const Caught once = caught_from(world, [&] {
        if (world.rank() == 0)
            throw IoError("disk is full");
    });

    std::exception_ptr failure;
    try {
        fail();
    } catch (...) {
        failure = std::current_exception();
    }
    const Caught twice = caught_from(world, [&] { std::rethrow_exception(failure); });

    EXPECT_EQ(twice.text, once.text);
}

TEST(AgreeTest, AForeignExceptionIsAnInternalError) {
    const HostComm world = test::world();

    const Caught caught = caught_from(world, [] { throw std::out_of_range("vector::at"); });

    EXPECT_EQ(caught.code, ExitCode::internal);
    EXPECT_THAT(caught.text, HasSubstr("vector::at"));
}

TEST(AgreeTest, TheCommunicatorGoesOnAfterAFailure) {
    const HostComm world = test::world();

    EXPECT_THROW(agree_on(world, [] { throw IoError("disk is full"); }), Error);

    EXPECT_EQ(world.all_reduce(1.0, ReduceOp::sum), world.size());
}

}  // namespace
}  // namespace hetseq
