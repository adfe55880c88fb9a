#pragma once

namespace hetseq {

/// Removes what killed jobs of this user left on this host, and says so. Done by one rank of each
/// host.
void clear_mpi_leftovers();

}  // namespace hetseq
