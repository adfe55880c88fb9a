#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hetseq::detail {

// Messages of TensorFlow's event.proto and summary.proto, as far as scalars need them.
std::string version_event(double wall_time);
std::string session_start_event(std::int64_t step, double wall_time);
std::string scalar_event(std::string_view tag, std::int64_t step, double value, double wall_time);

/// The part of a message that is read.
struct EventHead {
    std::int64_t step = 0;
    std::string_view file_version;  // of a file's first message
};

/// Empty if `message` is not an event.
std::optional<EventHead> parse_event(std::string_view message);

// A record: the message's length (8 bytes, little-endian), its checksum, the message, its checksum.
constexpr std::size_t record_head_bytes = 12;
constexpr std::size_t record_tail_bytes = 4;

std::string framed(std::string_view message);
/// The message's length from a record's first 12 bytes; empty if their checksum is wrong.
std::optional<std::uint64_t> record_length(std::string_view head);
/// `rest`: the message and its checksum.
bool is_whole(std::string_view rest);

}  // namespace hetseq::detail
