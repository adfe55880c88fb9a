#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hetseq {

class HostComm;

/// Notices that the kernel killed another rank of this host for want of memory, which that rank
/// cannot say itself: its process is gone, and the kernel counts more such kills than before.
class KilledRanks {
public:
    struct LocalRank {
        int rank = 0;
        int process = 0;
        std::string host;  // its own name: containers of one machine have several
    };
    /// What the kernel says; tests say something else.
    struct Kernel {
        std::function<bool(int process)> is_alive;
        std::function<std::int64_t()> memory_kills;
    };

    /// `locals`: the ranks of this machine, ascending; `own` is one of them.
    KilledRanks(std::vector<LocalRank> locals, int own, Kernel kernel);

    /// The message about those that were killed since the last call; empty where there are none, or
    /// where a lower rank of this host lives and says it.
    std::string look();

private:
    std::vector<LocalRank> locals_;
    int own_;
    Kernel kernel_;
    std::int64_t kills_;
};

/// Collective. Of the ranks whose processes this one can see.
KilledRanks make_killed_ranks(const HostComm& world);

}  // namespace hetseq
