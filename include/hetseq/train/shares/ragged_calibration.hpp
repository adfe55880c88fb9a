#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"
#include "hetseq/data/order/batch_items.hpp"
#include "hetseq/train/shares/calibration.hpp"

namespace hetseq {

/// A measured time of samples of unequal length.
struct RaggedSample {
    double values = 0;   // of their rows
    double squares = 0;  // sum of the rows' squared lengths
    std::int64_t micro_batches = 1;
    double ms = 0;
};

/// The cost of an item that explains `samples` best as a line in it (`fit_line`): 0 unless squares
/// lessen the squared relative errors by a tenth or more.
ItemCost fit_item_cost(std::span<const RaggedSample> samples);

struct RaggedCalibration {
    ItemCost item_cost;            // the same on all ranks
    StepCost cost;                 // this rank's, in units of it; its micro-batch is not set
    std::int64_t micro_batch = 0;  // padded tokens that memory holds; 0: a rank without work
};

/// Collective. As `calibrate`, for samples of unequal length: sizes of padded tokens, the samples
/// of middle lengths; beside them short and long samples, which tell what a row's length costs.
/// That is settled for the job: the median of the ranks'.
///
/// `capacities`: padded tokens a micro-batch, by rank; 0: a rank without work.
RaggedCalibration calibrate_ragged(const HostComm& world,
                                   Model& model,
                                   FlatParameters& parameters,
                                   Loader& loader,
                                   const BatchPlan& plan,
                                   std::span<const std::int64_t> capacities,
                                   const CalibrationOptions& options);

}  // namespace hetseq
