#pragma once

#include <filesystem>
#include <memory>

#include "hetseq/task/line_answering.hpp"

namespace hetseq {

/// A line of words through a token classifier: each word, a blank and its label, with tabs between
/// them.
std::unique_ptr<LineAnswering> make_tagging(const std::filesystem::path& folder,
                                            const PartOptions& options);

/// A line through a sequence classifier; a tab divides two texts. The answer is the likeliest
/// label, a tab and its probability; or a number, where the model predicts one.
std::unique_ptr<LineAnswering> make_classifying(const std::filesystem::path& folder,
                                                const PartOptions& options);

}  // namespace hetseq
