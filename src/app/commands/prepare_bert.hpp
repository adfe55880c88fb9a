#pragma once

#include "hetseq/data/prepare_bert.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

/// `hetseq prepare bert`. Collective over the world.
void prepare_bert_of(const CommandContext& context);

/// What was written, as tables, or as a JSON object.
std::string prepared_bert_text(const PreparedBert& prepared);
std::string prepared_bert_json(const PreparedBert& prepared);

}  // namespace hetseq
