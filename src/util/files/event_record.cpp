#include "event_record.hpp"

#include <bit>

#include "hetseq/util/files/crc32c.hpp"

namespace hetseq::detail {

namespace {

// Protocol buffers' wire types (https://protobuf.dev/programming-guides/encoding).
enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Field numbers of Event, Summary.Value and SessionLog.
constexpr std::uint64_t event_wall_time = 1, event_step = 2, event_file_version = 3,
                        event_summary = 5, event_session_log = 7;
constexpr std::uint64_t summary_value = 1, value_tag = 1, value_simple = 2;
constexpr std::uint64_t session_status = 1, session_start = 1;

void put_little_endian(std::string& text, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
        text += static_cast<char>((value >> (8 * i)) & 0xFFU);
}

void put_varint(std::string& text, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U)
        text += static_cast<char>((value & 0x7FU) | 0x80U);
    text += static_cast<char>(value);
}

void put_key(std::string& text, std::uint64_t field, Wire wire) {
    put_varint(text, (field << 3U) | static_cast<std::uint64_t>(wire));
}

void put_bytes(std::string& text, std::uint64_t field, std::string_view bytes) {
    put_key(text, field, Wire::bytes);
    put_varint(text, bytes.size());
    text += bytes;
}

std::string event_begin(double wall_time, std::int64_t step) {
    std::string text;
    put_key(text, event_wall_time, Wire::fixed64);
    put_little_endian(text, std::bit_cast<std::uint64_t>(wall_time), 8);
    if (step != 0) {
        put_key(text, event_step, Wire::varint);
        put_varint(text, static_cast<std::uint64_t>(step));
    }
    return text;
}

std::uint32_t masked(std::uint32_t crc) {
    return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

}  // namespace

std::string version_event(double wall_time) {
    std::string text = event_begin(wall_time, 0);
    put_bytes(text, event_file_version, "brain.Event:2");
    return text;
}

std::string session_start_event(std::int64_t step, double wall_time) {
    std::string session;
    put_key(session, session_status, Wire::varint);
    put_varint(session, session_start);
    std::string text = event_begin(wall_time, step);
    put_bytes(text, event_session_log, session);
    return text;
}

std::string scalar_event(std::string_view tag, std::int64_t step, double value, double wall_time) {
    std::string scalar;
    put_bytes(scalar, value_tag, tag);
    put_key(scalar, value_simple, Wire::fixed32);
    put_little_endian(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
    std::string summary;
    put_bytes(summary, summary_value, scalar);
    std::string text = event_begin(wall_time, step);
    put_bytes(text, event_summary, summary);
    return text;
}

std::string framed(std::string_view message) {
    std::string record;
    put_little_endian(record, message.size(), 8);
    put_little_endian(record, masked(crc32c(record)), 4);
    record += message;
    put_little_endian(record, masked(crc32c(message)), 4);
    return record;
}

}  // namespace hetseq::detail
