#pragma once

#include <string>

namespace hetseq {

class HostComm;

/// "hetseq 0.2.0 (43b6565)"; builds for other devices or processors of one revision are the same.
std::string program_text();

/// Collective. Throws BadConfig on all ranks when `program` differs over ranks, naming both and the
/// ranks: another version may make other collectives and other numbers.
void agree_on_program(const HostComm& world, const std::string& program);

}  // namespace hetseq
