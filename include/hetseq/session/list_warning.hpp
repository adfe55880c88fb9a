#pragma once

#include <string>

namespace hetseq {

class HostComm;

/// Collective. Warns once of the ranks that more than one entry of their --`option` fits. `entries`
/// are this rank's `competing_entries`.
void warn_of_competing_entries(const HostComm& world,
                               const std::string& option,
                               const std::string& entries);

}  // namespace hetseq
