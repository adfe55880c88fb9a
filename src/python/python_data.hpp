#pragma once

#include <string>

#include "hetseq/data/loading/micro_batch.hpp"
#include "hetseq/data/schema.hpp"
#include "hetseq/task/part_options.hpp"

#include "python_task.hpp"

namespace hetseq {

/// What the files must hold that `options.data` name. Where they name a split of a dataset in
/// Python, it is that dataset, which is made now, and the files are found or made by
/// `CorpusSchema::locate`: shards of its samples, or a file with their numbers.
CorpusSchema python_schema(const PythonTask& task, const PartOptions& options);

/// Whether `data` name a split of a dataset and no files. After `python_schema`.
bool names_dataset(const PythonTask& task, const std::string& data);

/// Whether `rows` are numbers of a dataset's samples, and not the task's fields.
bool stands_for_dataset(const TensorDict& rows);

}  // namespace hetseq
