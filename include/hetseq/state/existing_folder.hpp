#pragma once

#include <filesystem>

namespace hetseq {

/// Throws MissingInput where `folder`, which a user named as a run's, is none.
void check_folder(const std::filesystem::path& folder);

}  // namespace hetseq
