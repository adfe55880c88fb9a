#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hetseq {

/// The rank that this process is, for `process_line`; `log::set_identity` passes it on.
void set_process_identity(int rank, int size, const std::string& host);

/// "hetseq 0.2.0 (43b6565), rank 1 of 4 on node07, computing update 12": what a report on a failure
/// says about its process. Before the identity is known, rank and host are left out.
std::string process_line();
/// The same for a failure that all ranks share: "hetseq 0.2.0 (43b6565), 4 ranks, computing ...".
std::string job_line();

/// Writes `process_line()` into `buffer`, cut where it is too short; the length written.
/// Async-signal-safe.
std::size_t write_process_line(std::span<char> buffer) noexcept;

}  // namespace hetseq
