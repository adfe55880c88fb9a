#pragma once

#include <string>

namespace hetseq {

class HostComm;

/// "hetseq 0.2.0 (43b6565, LibTorch 2.11.0)"; builds for other devices or processors of one
/// revision are the same.
std::string program_text();

/// Collective. Throws BadConfig on all ranks if `program` differs over ranks, naming both programs
/// and the ranks. Another version may call other collectives and compute other numbers.
void agree_on_program(const HostComm& world, const std::string& program);

}  // namespace hetseq
