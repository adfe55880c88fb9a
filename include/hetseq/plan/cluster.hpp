#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/quantity.hpp"
#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// The most ranks that a described cluster may have.
constexpr std::int64_t most_planned_ranks = 16384;

/// A link: a message of S bytes takes latency + S / bandwidth. Without a bandwidth it is free.
struct Link {
    double latency_us = 0;
    double bandwidth_gb = std::numeric_limits<double>::infinity();  // 10^9 bytes a second

    /// Time of one message [ms].
    double message_ms(double bytes) const {
        return latency_us / 1e3 + bytes / (bandwidth_gb * 1e6);
    }
};

/// The larger latency and the smaller bandwidth.
Link slower(const Link& a, const Link& b);

/// Like layers of the model, one after the other. What they compute and hold is of a layer, and of
/// one unit of the batch.
struct LayerClass {
    std::string name;
    std::int64_t count = 1;
    double parameters = 0;
    double gflop = 0;          // forward, 10^9 operations
    double kept_mib = 0;       // from forward to backward, what comes in not counted
    double output_mib = 0;     // goes on to the next layer, and as much comes back
    double workspace_mib = 0;  // while it computes
};

/// Parameters that several layers read, each alone of its class; they count in each of these. What
/// of the gradients is not zero after an update is a part by layer.
struct TiedLayers {
    std::vector<std::size_t> layers;  // of Cluster::layers, two or more
    double parameters = 0;
    std::vector<double> filled = {};  // empty: all
};

struct DeviceClass {
    std::string name;
    StepCost cost;         // ms and units
    double update_ms = 0;  // after the reduction, once an update: clipping, optimizer, bookkeeping
    bool update_given = false;  // false: to be taken from a run, or none
    bool has_times = false;     // false: to be taken from a file of costs or a run
    double memory_mib = 0;      // of a rank; 0: not said
    double process_mib = 0;     // that is taken of it before there is a model
    std::string costs;          // that file (--cache-dir/step-cost-*.json); empty: none
    std::string measured;  // the run's host or device to take them from; empty: the class's name
    double tflops = 0;     // 10^12 operations a second that it reaches; 0: not said
    double launch_ms = 0;  // forward and backward of a layer take this for any micro-batch
    double message_ms_per_mib = 0;                // of its computing, where it is a stage
    std::map<std::string, double> layer_ms = {};  // measured, by layer: forward and backward of a
                                                  // unit; others take `tflops`
};

struct NodeClass {
    std::string name;
    std::size_t device = 0;            // of Cluster::devices
    std::int64_t gpus = 1;             // a node, one rank each
    std::int64_t count = 1;            // nodes
    std::optional<Link> intra, inter;  // where they differ from the cluster's
};

/// mpi: as hetseq sums tensors in host memory, by their bytes and the ranks (docs/mpi.md).
enum class AllReduceAlgorithm { ring, tree, mpi };

struct Network {
    bool given = false;  // false: to be taken from a run, or free
    Link intra;          // between the GPUs of a node
    Link inter;          // between nodes
    AllReduceAlgorithm algorithm = AllReduceAlgorithm::ring;
    double inter_update_ms = 0;  // once an update of more than one node, not overlapped
};

struct ModelSize {
    double bytes = 0;  // of all gradients; 0: nothing is reduced
    double bucket_mib = 8;
    bool bucket_given = false;
    double backward_fraction = 2.0 / 3;  // of a micro-batch's time
    std::int64_t parameters = 0;         // 0: as `bytes` of fp32
    std::int64_t state_tensors = 2;      // of the optimizer, of the size of all parameters
};

/// balanced: as `allocate` cuts it. declared: in proportion to the micro-batches. equal: the same
/// for every rank, as HetSeq did.
enum class Cut { balanced, declared, equal };

/// Who holds the optimizer's state: each rank all of it, or each a part, in proportion to what its
/// memory has left, or the same.
enum class StateParts { whole, by_memory, even };

struct PlannedJob {
    std::int64_t batch = 0;           // units, global; 0: units_per_rank times the ranks
    std::int64_t units_per_rank = 0;  // 0: batch is given
    std::int64_t updates = 0;         // 0: not said
    double spread = 0;  // coefficient of variation of a rank's time from update to update
    Cut cut = Cut::balanced;
    StateParts state = StateParts::whole;
    std::vector<std::int64_t> micro_batches = {};  // units, to compare layouts with; largest first
};

/// A number of the description that measured rows may determine.
enum class FitNumber {
    compute,  // a factor on the times of all devices, or of one
    spread,
    intra_latency,
    intra_bandwidth,
    inter_latency,
    inter_bandwidth,
    inter_update,
};

struct FitParameter {
    std::string name;  // as written
    FitNumber number = FitNumber::compute;
    std::optional<std::size_t> device;  // of Cluster::devices; compute only
};

/// A measured run of the same job on other nodes.
struct MeasuredRow {
    std::vector<std::int64_t> nodes;  // by node class
    double step_ms = 0;
    std::int64_t batch = 0;  // units; 0: the job's
    bool is_fitted = false;  // false: predicted only
};

/// The description that `hetseq plan` reads (docs/planning.md).
struct Cluster {
    std::vector<DeviceClass> devices;
    std::vector<NodeClass> nodes;
    Network network;
    ModelSize model;
    std::vector<LayerClass> layers = {};  // in the order of forward; none: no layouts are planned
    std::vector<TiedLayers> tied = {};
    PlannedJob job;
    std::vector<FitParameter> fit;
    std::vector<MeasuredRow> rows;

    /// Those of all layers, tied ones once.
    double layers_parameters() const;
    std::int64_t ranks() const;
    /// The job's global batch [units] on this many ranks.
    std::int64_t batch() const;
};

}  // namespace hetseq
