#include "hetseq/util/process/process_line.hpp"

#include <array>
#include <cstring>

#include "hetseq/util/process/activity.hpp"

#include "hetseq/version.hpp"
#include "signal_safe_text.hpp"

namespace hetseq {

namespace {

struct Identity {
    int rank = 0;
    int size = 0;  // 0: not known yet
    std::array<char, 256> host{};
};

constinit Identity identity;

void append_program(SignalSafeText& text) noexcept {
    text.append("hetseq ").append(version::number).append(" (").append(version::revision);
    text.append("), ");
}

void append_activity(SignalSafeText& text) noexcept {
    const Activity at = activity::now();
    text.append(to_string(at.phase));
    if (at.update > 0)
        text.append(", update ").append(at.update);
}

}  // namespace

void set_process_identity(int rank, int size, const std::string& host) {
    identity.rank = rank;
    identity.size = size;
    std::strncpy(identity.host.data(), host.c_str(), identity.host.size() - 1);
}

std::size_t write_process_line(std::span<char> buffer) noexcept {
    SignalSafeText text{buffer};
    append_program(text);
    if (identity.size > 0) {
        text.append("rank ").append(identity.rank).append(" of ").append(identity.size);
        text.append(" on ").append(identity.host.data()).append(", ");
    }
    append_activity(text);
    return text.size();
}

std::string process_line() {
    std::array<char, 512> buffer{};
    return {buffer.data(), write_process_line(buffer)};
}

std::string job_line() {
    std::array<char, 512> buffer{};
    SignalSafeText text{buffer};
    append_program(text);
    if (identity.size > 1)
        text.append(identity.size).append(" ranks, ");
    append_activity(text);
    return {buffer.data(), text.size()};
}

}  // namespace hetseq
