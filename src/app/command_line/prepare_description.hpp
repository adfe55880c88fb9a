#pragma once

#include "hetseq/app/command_line/command_table.hpp"

namespace hetseq {

/// The command `prepare` with its forms.
CommandDescription prepare_description();

/// How BERT's tokenizer treats case and accents, for every command that has one.
CommandOption cased_option();
CommandOption accents_option();

}  // namespace hetseq
