#include "comm/mpi/hierarchical/hierarchical_reduce.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;

struct Place {
    int rank = 0;
    int ranks = 1;
};

Place place() {
    Place own;
    MPI_Comm_rank(MPI_COMM_WORLD, &own.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &own.ranks);
    return own;
}

struct Hosts {
    std::string name;
    std::vector<int> of_rank;
};

// 72 ranks are exactly these eleven hosts.
std::vector<int> unequal_hosts(int ranks) {
    constexpr std::array sizes{1, 3, 8, 2, 16, 5, 7, 4, 9, 6, 11};
    std::vector<int> hosts;
    for (int host = 0; static_cast<int>(hosts.size()) < ranks; ++host)
        hosts.insert(hosts.end(),
                     static_cast<std::size_t>(sizes[static_cast<std::size_t>(host) % sizes.size()]),
                     host);
    hosts.resize(static_cast<std::size_t>(ranks));
    return hosts;
}

std::vector<Hosts> all_hosts(int ranks) {
    std::vector<Hosts> all{{"unequal", unequal_hosts(ranks)}, {"one", {}}, {"taken in turn", {}}};
    all.push_back({"one rank each", {}});
    for (int rank = 0; rank < ranks; ++rank) {
        all[1].of_rank.push_back(7);
        all[2].of_rank.push_back(rank % 5);
        all[3].of_rank.push_back(rank);
    }
    return all;
}

// Of unlike size, so that another order of additions shows in the last bits.
template <class Value>
Value random_term(int rank, std::size_t i) {
    const auto x = static_cast<double>(i);
    return static_cast<Value>(std::cos(x * (rank + 2) + 0.3) *
                              std::exp2((i + 5U * static_cast<unsigned>(rank)) % 11));
}

// Sums of up to 100 of them are exact in any order.
template <class Value>
Value whole_term(int rank, std::size_t i) {
    return static_cast<Value>((i * 31 + static_cast<std::size_t>(rank) * 17) % 997);
}

// The documented order: hosts [begin, end) hold `sums`, and `owner` has the total.
template <class Value>
Value halved(const std::vector<Value>& sums, int begin, int end, int owner) {
    const int n = end - begin;
    if (n == 1)
        return sums.front();
    const auto lower = static_cast<std::size_t>((n + 1) / 2);
    const auto upper = static_cast<std::size_t>(n) - lower;
    const int middle = begin + static_cast<int>(lower);
    std::vector<Value> next;
    if (owner < middle) {
        for (std::size_t i = 0; i < lower; ++i)
            next.push_back(i < upper ? sums[i] + sums[lower + i] : sums[i]);
        return halved(next, begin, middle, owner);
    }
    for (std::size_t i = 0; i < upper; ++i) {
        next.push_back(sums[lower + i] + sums[i]);
        if (upper < lower && middle + static_cast<int>(i) == owner)
            next.back() = next.back() + sums[lower - 1];
    }
    return halved(next, middle, end, owner);
}

template <class Value, class Term>
Value expected_sum(const HostMap& hosts, std::size_t i, int owner, Term term) {
    std::vector<Value> sums;
    for (int host = 0; host < hosts.hosts(); ++host) {
        const std::vector<int>& ranks = hosts.ranks_on(host);
        Value sum = term(ranks.front(), i);
        for (std::size_t k = 1; k < ranks.size(); ++k)
            sum = sum + term(ranks[k], i);
        sums.push_back(sum);
    }
    return halved(sums, 0, hosts.hosts(), owner);
}

using AllScratch = std::array<std::vector<std::byte>, pieces_in_flight>;

struct Lengths {
    std::size_t message_bytes;
    std::size_t piece_bytes;
};

template <class Value>
void sum_parts(std::byte* target, std::span<const std::byte* const> parts, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        Value sum = reinterpret_cast<const Value*>(parts[0])[i];
        for (const std::byte* part : parts.subspan(1))
            sum = sum + reinterpret_cast<const Value*>(part)[i];
        reinterpret_cast<Value*>(target)[i] = sum;
    }
}

// Calls collective(run, values) with `tensor`.
template <class Value, class Collective>
void run_on(std::vector<Value>& tensor,
            const HostMap& hosts,
            Lengths lengths,
            Collective collective) {
    static AllScratch scratch;
    const std::atomic<bool> abandoned = false;
    Progress progress{10min, abandoned, "the other ranks"};
    const Values values{reinterpret_cast<std::byte*>(tensor.data()),
                        tensor.size(),
                        sizeof(Value),
                        sum_parts<Value>};
    collective(
        HierarchicalRun{
            MPI_COMM_WORLD, hosts, lengths.message_bytes, lengths.piece_bytes, scratch, progress},
        values);
}

template <class Value, class Term>
std::vector<Value> terms_of(int rank, std::size_t count, Term term) {
    std::vector<Value> tensor(count);
    for (std::size_t i = 0; i < count; ++i)
        tensor[i] = term(rank, i);
    return tensor;
}

template <class Value, class Term>
void expect_all_reduced(const Hosts& named, std::size_t count, Lengths lengths, Term term) {
    const HostMap hosts{named.of_rank};
    auto tensor = terms_of<Value>(place().rank, count, term);

    run_on(tensor, hosts, lengths, hierarchical_all_reduce);

    const auto n = static_cast<std::size_t>(hosts.hosts());
    std::size_t wrong = 0;
    for (std::size_t host = 0; host < n; ++host)
        for (std::size_t i = count * host / n; i < count * (host + 1) / n; ++i)
            wrong += tensor[i] != expected_sum<Value>(hosts, i, static_cast<int>(host), term);
    EXPECT_EQ(wrong, 0) << count << " values, hosts: " << named.name;
}

TEST(HierarchicalReduce, SumsInTheDocumentedOrderToTheBit) {
    for (const Hosts& hosts : all_hosts(place().ranks)) {
        // Nothing, fewer values than ranks or hosts, several messages and pieces.
        for (const std::size_t count : {0, 1, 3, 70, 1009})
            expect_all_reduced<float>(hosts, count, {64, 2048}, random_term<float>);
        expect_all_reduced<double>(hosts, 1009, {1 << 16, 1 << 22}, random_term<double>);
    }
}

TEST(HierarchicalReduce, WholeNumbersAreExact) {
    for (const Hosts& hosts : all_hosts(place().ranks)) {
        const std::size_t count = 2003;
        auto tensor = terms_of<float>(place().rank, count, whole_term<float>);
        auto larger = terms_of<double>(place().rank, count, whole_term<double>);

        run_on(tensor, HostMap{hosts.of_rank}, {512, 4096}, hierarchical_all_reduce);
        run_on(larger, HostMap{hosts.of_rank}, {512, 4096}, hierarchical_all_reduce);

        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            double sum = 0;
            for (int rank = 0; rank < place().ranks; ++rank)
                sum += whole_term<double>(rank, i);
            wrong += static_cast<double>(tensor[i]) != sum || larger[i] != sum;
        }
        EXPECT_EQ(wrong, 0) << hosts.name;
    }
}

// Of any length, zero included, the last ranks' first, with a value between them that is nobody's.
std::vector<ElementRange> unequal_ranges(int ranks) {
    std::vector<ElementRange> ranges(static_cast<std::size_t>(ranks));
    std::size_t begin = 2;
    for (std::size_t r = ranges.size(); r-- > 0;) {
        ranges[r] = {begin, r % 3 == 1 ? 0 : r * 7919 % 61};
        begin += ranges[r].length + 1;
    }
    return ranges;
}

TEST(HierarchicalReduce, ScattersSumsToGivenRanges) {
    const auto [rank, ranks] = place();
    const std::vector<ElementRange> ranges = unequal_ranges(ranks);
    const ElementRange own = ranges[static_cast<std::size_t>(rank)];
    for (const Hosts& named : all_hosts(ranks)) {
        const HostMap hosts{named.of_rank};
        const std::size_t count = ranges.front().begin + ranges.front().length + 5;
        const auto before = terms_of<float>(rank, count, random_term<float>);
        auto tensor = before;

        run_on(tensor, hosts, {64, 2048}, [&](const HierarchicalRun& run, const Values& values) {
            hierarchical_reduce_scatter(run, values, ranges);
        });

        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const bool is_own = i >= own.begin && i < own.begin + own.length;
            wrong += tensor[i] != (is_own ? expected_sum<float>(
                                                hosts, i, hosts.host_of(rank), random_term<float>)
                                          : before[i]);
        }
        EXPECT_EQ(wrong, 0) << named.name;
    }
}

TEST(HierarchicalReduce, GathersGivenRangesFromTheirRanks) {
    const auto [rank, ranks] = place();
    const std::vector<ElementRange> ranges = unequal_ranges(ranks);
    const std::size_t count = ranges.front().begin + ranges.front().length + 5;
    for (const Hosts& named : all_hosts(ranks)) {
        auto tensor = terms_of<float>(rank, count, random_term<float>);
        auto expected = tensor;
        for (int from = 0; from < ranks; ++from) {
            const ElementRange theirs = ranges[static_cast<std::size_t>(from)];
            for (std::size_t i = theirs.begin; i < theirs.begin + theirs.length; ++i)
                expected[i] = random_term<float>(from, i);
        }

        run_on(tensor,
               HostMap{named.of_rank},
               {64, 2048},
               [&](const HierarchicalRun& run, const Values& values) {
                   hierarchical_all_gather(run, values, ranges);
               });

        EXPECT_EQ(tensor, expected) << named.name;
    }
}

TEST(HierarchicalReduce, TakesNoMoreMemoryThanAFewPieces) {
    const HostMap hosts{unequal_hosts(place().ranks)};
    std::vector<float> tensor(100'000, 1);
    AllScratch scratch;
    const std::atomic<bool> abandoned = false;
    Progress progress{10min, abandoned, "the other ranks"};
    const Values values{reinterpret_cast<std::byte*>(tensor.data()),
                        tensor.size(),
                        sizeof(float),
                        sum_parts<float>};
    constexpr std::size_t piece_bytes = 16384;

    hierarchical_all_reduce({MPI_COMM_WORLD, hosts, 4096, piece_bytes, scratch, progress}, values);

    EXPECT_EQ(std::count(tensor.begin(), tensor.end(), static_cast<float>(place().ranks)), 100'000);
    for (const auto& slot : scratch)
        EXPECT_LE(slot.size(), 4 * piece_bytes);
}

// Throws while the messages of the ranks that are there are under way.
TEST(HierarchicalReduce, AMissingRankIsAnErrorAtTheDeadline) {
    const auto [rank, ranks] = place();
    if (ranks == 1)
        GTEST_SKIP() << "no other rank";
    const HostMap hosts{unequal_hosts(ranks)};
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    // MPI may still write to them.
    auto* tensor = new std::vector<float>(1000, 1);
    auto* scratch = new AllScratch;
    const std::atomic<bool> abandoned = false;
    const Values values{reinterpret_cast<std::byte*>(tensor->data()),
                        tensor->size(),
                        sizeof(float),
                        sum_parts<float>};

    if (rank != 0) {
        Progress progress{300ms, abandoned, "rank 0"};
        EXPECT_THROW(
            hierarchical_all_reduce({comm, hosts, 1024, 1 << 20, *scratch, progress}, values),
            CommError);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace hetseq
