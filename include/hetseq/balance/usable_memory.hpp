#pragma once

namespace hetseq {

/// The part of a rank's memory that plans may fill. The rest is for what no plan knows, such as
/// memory that lies between blocks, and other processes.
inline constexpr double usable_memory = 0.9;

}  // namespace hetseq
