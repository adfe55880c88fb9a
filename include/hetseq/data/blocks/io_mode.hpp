#pragma once

namespace hetseq {

/// How the ranks of a host read a block: together through MPI-IO, collectively or each for itself,
/// or each for itself without MPI-IO.
enum class IoMode { collective, independent, serial };

}  // namespace hetseq
