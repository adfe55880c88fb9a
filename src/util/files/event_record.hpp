#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hetseq::detail {

// Messages of TensorFlow's event.proto and summary.proto, as far as scalars need them.
std::string version_event(double wall_time);
std::string session_start_event(std::int64_t step, double wall_time);
std::string scalar_event(std::string_view tag, std::int64_t step, double value, double wall_time);

// A record: the message's length (8 bytes, little-endian), its checksum, the message, its checksum.
std::string framed(std::string_view message);

}  // namespace hetseq::detail
