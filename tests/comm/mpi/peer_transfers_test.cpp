#include "hetseq/comm/mpi/peer_transfers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t piece = 1000;  // bytes
constexpr PeerTransfers::Options small_pieces{.piece_bytes = piece, .window_bytes = 3 * piece};

// The bytes of a list of transfers, and what arrives of them.
class Parcels {
public:
    struct Parcel {
        int from;
        int to;
        std::size_t bytes;
    };

    Parcels(const HostComm& world, std::vector<Parcel> parcels)
        : rank_{world.rank()}, parcels_{std::move(parcels)}, arrived_(parcels_.size()) {
        fill(0);
    }

    /// Of other values for each `turn`.
    void fill(std::size_t turn) {
        sent_.resize(parcels_.size());
        for (std::size_t i = 0; i < parcels_.size(); ++i)
            if (parcels_[i].from == rank_)
                sent_[i] = contents(i, turn);
        arrived_.assign(parcels_.size(), {});
    }
    std::vector<PeerTransfer> transfers() const {
        std::vector<PeerTransfer> list;
        for (std::size_t i = 0; i < parcels_.size(); ++i)
            list.push_back({parcels_[i].from, parcels_[i].to, parcels_[i].bytes, sent_[i].data()});
        return list;
    }
    PeerTransfers::Take take() {
        return [this](std::size_t transfer, std::span<const std::byte> bytes) {
            EXPECT_GE(transfer, last_);
            EXPECT_LE(bytes.size(), piece);
            last_ = transfer;
            arrived_[transfer].insert(arrived_[transfer].end(), bytes.begin(), bytes.end());
        };
    }
    void expect_all(std::size_t turn) {
        for (std::size_t i = 0; i < parcels_.size(); ++i)
            EXPECT_EQ(arrived_[i],
                      parcels_[i].to == rank_ ? contents(i, turn) : std::vector<std::byte>{})
                << "transfer " << i;
        last_ = 0;
    }

private:
    std::vector<std::byte> contents(std::size_t transfer, std::size_t turn) const {
        std::vector<std::byte> bytes(parcels_[transfer].bytes);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + transfer * 7 + turn) % 256);
        return bytes;
    }

    int rank_;
    std::vector<Parcel> parcels_;
    std::vector<std::vector<std::byte>> sent_, arrived_;
    std::size_t last_ = 0;
};

// From every rank to every rank, with sizes on both sides of a piece's borders, and nothing.
std::vector<Parcels::Parcel> interleaved(int ranks) {
    const std::size_t sizes[] = {1, 0, piece, piece + 1, 3 * piece - 1, 7, 12 * piece};
    std::vector<Parcels::Parcel> list;
    for (int i = 0; i < 60; ++i)
        list.push_back({i * 7 % ranks, i / 3 % ranks, sizes[i % 7]});
    return list;
}

TEST(PeerTransfersTest, EveryByteArrivesInOrderAgainAndAgain) {
    const HostComm world = test::world();
    Parcels parcels(world, interleaved(world.size()));
    PeerTransfers transfers(world, parcels.transfers(), small_pieces);

    EXPECT_EQ(transfers.between_ranks(), world.size() > 1);
    transfers.move(parcels.take());
    parcels.expect_all(0);
    EXPECT_FALSE(transfers.incomplete());

    Parcels others(world, interleaved(world.size()));
    others.fill(1);
    PeerTransfers next(world, others.transfers(), small_pieces);
    transfers.move([](std::size_t, std::span<const std::byte>) {});
    next.move(others.take());
    others.expect_all(1);
}

TEST(PeerTransfersTest, OneRankMayHoldAll) {
    const HostComm world = test::world();
    std::vector<Parcels::Parcel> list;
    for (int i = 0; i < 20; ++i)
        list.push_back({world.size() - 1, i % world.size(), piece * i / 2});
    Parcels parcels(world, list);
    PeerTransfers transfers(world, parcels.transfers(), small_pieces);

    transfers.move(parcels.take());

    parcels.expect_all(0);
}

TEST(PeerTransfersTest, WhatStaysOnItsRankNeedsNoOther) {
    const HostComm world = test::world();
    std::vector<Parcels::Parcel> list{{0, world.size() - 1, 0}};
    for (int rank = 0; rank < world.size(); ++rank)
        list.push_back({rank, rank, 5 * piece + 1});
    Parcels parcels(world, list);
    PeerTransfers transfers(world, parcels.transfers(), small_pieces);

    EXPECT_FALSE(transfers.between_ranks());
    if (world.rank() == 0) {
        transfers.move(parcels.take());
        parcels.expect_all(0);
    }
}

// The senders would have sent everything by the time that rank 0 looks for it.
TEST(PeerTransfersTest, WhatArrivesStaysWithinTheWindow) {
    const HostComm world = test::world();
    std::vector<Parcels::Parcel> list;
    for (int i = 0; i < 50; ++i)
        list.push_back({i % world.size(), 0, 20 * piece});
    Parcels parcels(world, list);
    PeerTransfers transfers(world, parcels.transfers(), small_pieces);
    std::uintptr_t first = UINTPTR_MAX, last = 0;
    std::size_t pieces = 0;

    if (world.rank() == 0)
        std::this_thread::sleep_for(100ms);
    transfers.move([&](std::size_t transfer, std::span<const std::byte> bytes) {
        if (list[transfer].from == world.rank())
            return;
        const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
        first = std::min(first, begin);
        last = std::max(last, begin + bytes.size());
        ++pieces;
    });

    if (world.rank() == 0 && world.size() > 1) {
        EXPECT_GT(pieces, 400U);
        EXPECT_LE(last - first, 3 * piece);
    }
}

// Each rank is the last of another's list: none may wait for its turn with sending.
TEST(PeerTransfersTest, LargeOnesInAllDirectionsDoNotWaitForEachOther) {
    const HostComm world = test::world();
    const int n = world.size();
    std::vector<Parcels::Parcel> list;
    for (int distance = n; distance > 0; --distance)
        for (int from = 0; from < n; ++from)
            list.push_back({from, (from + distance) % n, std::size_t{1} << 20});
    Parcels parcels(world, list);
    PeerTransfers transfers(
        world, parcels.transfers(), {.piece_bytes = 200'000, .window_bytes = 1});

    std::size_t bytes = 0;
    transfers.move([&](std::size_t, std::span<const std::byte> part) { bytes += part.size(); });

    EXPECT_EQ(bytes, static_cast<std::size_t>(n) << 20);
}

TEST(PeerTransfersTest, ARankThatFailsTakesPartToTheEnd) {
    const HostComm world = test::world();
    Parcels parcels(world, interleaved(world.size()));
    PeerTransfers transfers(world, parcels.transfers(), small_pieces);
    int calls = 0;
    const auto full = [&](std::size_t, std::span<const std::byte>) {
        ++calls;
        throw std::runtime_error("the disk is full");
    };

    if (world.rank() == 0) {
        EXPECT_THROW(transfers.move(full), std::runtime_error);
        EXPECT_EQ(calls, 1);
    } else {
        transfers.move(parcels.take());
        parcels.expect_all(0);
    }
    Parcels again(world, interleaved(world.size()));
    transfers.move(again.take());
    again.expect_all(0);
}

TEST(PeerTransfersTest, UnlikeListsAreRefusedByAllRanks) {
    const HostComm world = test::world();
    const std::size_t bytes = world.rank() == world.size() - 1 ? 2 : 1;
    const std::vector<PeerTransfer> list{{0, 0, bytes, nullptr}};

    if (world.size() > 1) {
        EXPECT_THROW(PeerTransfers(world, list, {}), InternalError);
    } else {
        EXPECT_NO_THROW(PeerTransfers(world, list, {}));
    }
}

std::vector<Parcels::Parcel> to_and_from_rank_0(int ranks) {
    std::vector<Parcels::Parcel> list;
    for (int rank = 1; rank < ranks; ++rank) {
        list.push_back({rank, 0, 1 << 20});
        list.push_back({0, rank, 1 << 20});
    }
    return list;
}

std::string error_of(PeerTransfers& transfers, Parcels& parcels) {
    try {
        transfers.move(parcels.take());
    } catch (const CommError& error) {
        return error.what();
    }
    return "nothing";
}

// MPI may still read the bytes of transfers that are not complete: they are left to it.
TEST(PeerTransfersTest, AMissingRankIsAnErrorAtTheDeadline) {
    const HostComm world = test::world();
    auto parcels = std::make_unique<Parcels>(world, to_and_from_rank_0(world.size()));
    PeerTransfers transfers(world, parcels->transfers(), {.piece_bytes = piece, .deadline = 300ms});

    if (world.rank() != 0) {
        const std::string text = error_of(transfers, *parcels);
        EXPECT_NE(text.find("without a movement from rank 0"), std::string::npos) << text;
        EXPECT_TRUE(transfers.incomplete());
        EXPECT_NE(error_of(transfers, *parcels).find("not complete"), std::string::npos);
        static_cast<void>(parcels.release());
    }
    world.barrier();
}

// MPI would keep short messages for it, and they could be any number.
TEST(PeerTransfersTest, ShortPiecesAreNotLeftWithARankThatDoesNotTakeThem) {
    const HostComm world = test::world();
    std::vector<Parcels::Parcel> list;
    for (int rank = 1; rank < world.size(); ++rank)
        list.push_back({rank, 0, 1});
    auto parcels = std::make_unique<Parcels>(world, list);
    PeerTransfers transfers(world, parcels->transfers(), {.deadline = 300ms});

    if (world.rank() != 0) {
        EXPECT_NE(error_of(transfers, *parcels).find("rank 0"), std::string::npos);
        static_cast<void>(parcels.release());
    }
    world.barrier();
}

// The deadline counts from the last movement: all of them take longer.
TEST(PeerTransfersTest, ASlowRankIsWaitedFor) {
    const HostComm world = test::world();
    std::vector<Parcels::Parcel> list;
    for (int round = 0; round < 18; ++round)
        for (int rank = 1; rank < world.size(); ++rank)
            list.push_back({rank, 0, piece});
    Parcels parcels(world, list);
    PeerTransfers transfers(
        world,
        parcels.transfers(),
        {.piece_bytes = piece, .window_bytes = piece, .most_sent = 1, .deadline = 1500ms});
    const auto begin = std::chrono::steady_clock::now();

    transfers.move([&](std::size_t, std::span<const std::byte>) {
        std::this_thread::sleep_for(120ms / (world.size() - 1));
    });

    if (world.size() > 1) {
        EXPECT_GT(std::chrono::steady_clock::now() - begin, 1600ms);
    }
}

TEST(PeerTransfersTest, AnAbandonedOneEndsSoon) {
    const HostComm world = test::world();
    auto parcels = std::make_unique<Parcels>(world, to_and_from_rank_0(world.size()));
    PeerTransfers transfers(world, parcels->transfers(), {.piece_bytes = piece});

    if (world.rank() != 0) {
        std::thread ending([&] {
            std::this_thread::sleep_for(100ms);
            transfers.abandon();
        });
        const std::string text = error_of(transfers, *parcels);
        EXPECT_NE(text.find("abandoned"), std::string::npos) << text;
        ending.join();
        static_cast<void>(parcels.release());
    }
    world.barrier();
}

}  // namespace
}  // namespace hetseq
