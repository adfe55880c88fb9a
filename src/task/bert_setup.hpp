#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/data/schema.hpp"
#include "hetseq/model/bert/bert_config.hpp"
#include "hetseq/model/files/companion_file.hpp"
#include "hetseq/task/part_options.hpp"

namespace hetseq {

/// The network that --model-config, --init-model and the dropouts say.
BertConfig bert_config_of(const PartOptions& options);

/// The text `name` that stands beside --init-model; nothing where there is none.
std::optional<std::string> text_beside_model(const PartOptions& options, const std::string& name);

/// The vocabulary and what becomes of case: those of the training data, where hetseq prepared them,
/// otherwise those of --init-model. Throws BadConfig where they contradict each other.
std::vector<CompanionFile> bert_text_files(const PartOptions& options, const BertConfig& config);

/// The shards of all data hold the same texts as the training data, where these hold them.
std::vector<AttachmentSchema> bert_text_attachments(const PartOptions& options);

/// The ragged ids of shards that hetseq prepared.
FieldSchema ragged_ids(const BertConfig& config);

/// What the bounds of ids mean.
std::string meaning_of_ids(const BertConfig& config);

}  // namespace hetseq
