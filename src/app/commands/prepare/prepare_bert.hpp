#pragma once

#include <string>

#include "hetseq/prepare/prepare_bert.hpp"
#include "hetseq/app/commands.hpp"

namespace hetseq {

/// What `hetseq prepare bert` makes, and how it tells about it.
struct BertPreparation {
    PrepareBertOptions data{};
    bool json = false;
};

OptionsOf<BertPreparation> bert_preparation_options();

/// `hetseq prepare bert`. Collective over the world.
void prepare_bert_of(const CommandContext& context);

/// What was written, as tables, or as a JSON object.
std::string prepared_bert_text(const PreparedBert& prepared);
std::string prepared_bert_json(const PreparedBert& prepared);

}  // namespace hetseq
