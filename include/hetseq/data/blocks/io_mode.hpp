#pragma once

namespace hetseq {

/// How the ranks of a host read a block. `collective`: together, through MPI-IO. `independent`:
/// each rank by itself, through MPI-IO. `serial`: each rank by itself, without MPI-IO.
enum class IoMode { collective, independent, serial };

}  // namespace hetseq
