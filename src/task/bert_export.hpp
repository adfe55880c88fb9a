#pragma once

#include <filesystem>

#include "hetseq/task/model_export.hpp"

namespace hetseq {

/// For all BERTs: the decoder's bias under both of its names, and a tokenizer that knows its kind
/// and the model's positions. Throws BadData.
void export_bert(const std::filesystem::path& folder, ExportedModel& exported);

}  // namespace hetseq
