#include "comm/mpi/hierarchical/recursive_halving.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/util/all_reduce_scheme.hpp"

namespace hetseq {
namespace {

using Levels = std::vector<std::vector<HalvingLevel>>;  // by host

Levels levels_of_all(int hosts) {
    Levels levels;
    for (int host = 0; host < hosts; ++host)
        levels.push_back(halving_levels_of(host, hosts));
    return levels;
}

bool gives(const HalvingLevel& level, const HostExchange& expected) {
    return std::any_of(level.gives.begin(), level.gives.end(), [&](const HostExchange& one) {
        return one.host == expected.host && one.begin == expected.begin && one.end == expected.end;
    });
}

TEST(RecursiveHalving, WhatOneHostGetsTheOtherGives) {
    for (int hosts = 1; hosts <= 40; ++hosts) {
        const Levels levels = levels_of_all(hosts);
        std::size_t given = 0;
        std::size_t got = 0;
        for (int host = 0; host < hosts; ++host)
            for (std::size_t k = 0; k < levels[static_cast<std::size_t>(host)].size(); ++k) {
                const HalvingLevel& level = levels[static_cast<std::size_t>(host)][k];
                given += level.gives.size();
                got += level.gets.size();
                for (const HostExchange& one : level.gets)
                    EXPECT_TRUE(gives(levels.at(static_cast<std::size_t>(one.host)).at(k),
                                      {host, one.begin, one.end}))
                        << hosts << " hosts, level " << k;
            }
        EXPECT_EQ(given, got);
    }
}

// In sets of hosts whose values a sum holds: nobody twice, and in the end everybody.
TEST(RecursiveHalving, EachHostsValuesReachEachOwnerOnce) {
    for (int hosts = 1; hosts <= 40; ++hosts) {
        const Levels levels = levels_of_all(hosts);
        std::map<std::pair<int, int>, std::multiset<int>> held;  // by holder and owner
        for (int host = 0; host < hosts; ++host)
            for (int owner = 0; owner < hosts; ++owner)
                held[{host, owner}] = {host};
        for (std::size_t k = 0; k < levels.front().size(); ++k) {
            const auto before = held;
            for (int host = 0; host < hosts; ++host)
                if (k < levels[static_cast<std::size_t>(host)].size())
                    for (const HostExchange& one : levels[static_cast<std::size_t>(host)][k].gets)
                        for (int owner = one.begin; owner < one.end; ++owner)
                            held[{host, owner}].insert(before.at({one.host, owner}).begin(),
                                                       before.at({one.host, owner}).end());
        }
        for (int host = 0; host < hosts; ++host) {
            std::multiset<int> all;
            for (int other = 0; other < hosts; ++other)
                all.insert(other);
            EXPECT_EQ((held[{host, host}]), all) << hosts << " hosts, host " << host;
        }
    }
}

// What `hetseq plan` counts.
TEST(RecursiveHalving, TakesTheLevelsAndPartsThatAreCounted) {
    for (int hosts = 1; hosts <= 70; ++hosts) {
        std::int64_t busiest = 0;
        std::size_t most_levels = 0;
        for (const auto& levels : levels_of_all(hosts)) {
            std::int64_t sent = 0;
            std::int64_t received = 0;
            for (const HalvingLevel& level : levels) {
                for (const HostExchange& one : level.gives)
                    sent += one.end - one.begin;
                for (const HostExchange& one : level.gets)
                    received += one.end - one.begin;
            }
            busiest = std::max({busiest, sent, received});
            most_levels = std::max(most_levels, levels.size());
        }
        EXPECT_LE(busiest, halving_parts(hosts)) << hosts;
        EXPECT_GE(busiest, hosts - 1) << hosts;
        EXPECT_EQ(most_levels, static_cast<std::size_t>(halving_levels(hosts))) << hosts;
    }
    EXPECT_EQ(halving_parts(64), 63);
    EXPECT_EQ(halving_parts(9), 5 + 3 + 2 + 1);
}

}  // namespace
}  // namespace hetseq
