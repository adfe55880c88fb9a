#pragma once

#include <cstdint>

namespace hetseq {

/// Throws BadConfig where what all ranks kept of a validation's samples, `bytes`, would take rank 0
/// more than it should, when it gathers and computes with them: copies lie beside each other, so
/// that the limit is a quarter of the memory that its host has available.
void check_room_for_kept(std::int64_t bytes, std::int64_t available_mb);

}  // namespace hetseq
