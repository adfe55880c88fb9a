#pragma once

#include "hetseq/app/command_table.hpp"

namespace hetseq {

/// The command `prepare` with its forms.
CommandDescription prepare_description();

}  // namespace hetseq
