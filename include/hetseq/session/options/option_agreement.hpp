#pragma once

#include "hetseq/session/options/options.hpp"

namespace hetseq {

class HostComm;

/// Collective. Throws BadConfig on all ranks when an option of the job differs over ranks, naming
/// the option, the ranks and their values.
void agree_on_options(const HostComm& world,
                      const OptionValues& values,
                      const OptionTable& table = option_table());

}  // namespace hetseq
