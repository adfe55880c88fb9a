#pragma once

namespace hetseq {

/// The columns of the terminal that shows this process's standard error, directly or through
/// mpirun; 0 where none does.
int columns_of_terminal();

}  // namespace hetseq
