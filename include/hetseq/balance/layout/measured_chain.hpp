#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// What was measured of a model's chain, and of the devices that computed it, to choose a layout.
struct MeasuredChain {
    /// Of one unit of the batch: a sample, or a token with padding.
    struct Unit {
        std::string kind;         // units of one kind cost the same: "encoder layer"
        double parameters = 0;    // trained ones; tied ones count in each unit that reads them
        double kept_mb = 0;       // from forward to backward, the outputs among it [MiB]
        double output_mb = 0;     // that the next unit gets
        double workspace_mb = 0;  // while it computes
    };
    /// Like devices. Forward and backward of chain unit u take launch_ms + n unit_ms[u] for n units
    /// of the batch at once.
    struct Devices {
        std::string name;
        std::vector<std::string> hosts;
        double launch_ms = 0;  // the mean over the chain
        std::vector<double> unit_ms;
        double message_ms_per_mb = 0;  // computing that messages of stages take
    };

    /// Parameters that several units read. Of the gradients, `filled` is not zero after a batch, by
    /// unit.
    struct Tied {
        std::vector<std::size_t> units;
        double parameters = 0;
        std::vector<double> filled;
    };

    bool counts_tokens = false;  // with padding; false: a unit of the batch is a sample
    std::vector<std::int64_t> micro_batches = {};  // that were weighed, the largest first
    std::vector<Unit> units = {};
    std::vector<Tied> tied = {};
    std::vector<Devices> devices = {};
};

}  // namespace hetseq
