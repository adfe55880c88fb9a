#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/text/subwords/sequence_pieces.hpp"
#include "hetseq/model/model.hpp"

#include "app/lines/ordered_lines.hpp"
#include "text_rows.hpp"

namespace hetseq {

/// Lines on their way through a sequence classifier; a tab divides two texts. A line that goes out
/// has the likeliest label, a tab and its probability; or a number, where the model predicts one.
class TextClassifying : public OrderedLines<TextBatch, &TextBatch::rows> {
public:
    using Result = AnsweredBatch;

    TextClassifying(SequenceEncoder encoder, const LabellingOptions& options)
        : OrderedLines{options.caps, options.window},
          encoder_{std::move(encoder)},
          options_{options} {}

    void add(const std::string& line);
    void put(const AnsweredBatch& batch);
    static AnsweredBatch result_from_bytes(const std::string& bytes) {
        return answers_from_bytes(bytes);
    }
    /// As TextTagging's.
    static TensorDict fields_of(const TextBatch& batch);
    static std::vector<TextAnswer> answers_of(const TextBatch& batch,
                                              const std::vector<Prediction>& predictions);

    std::string size_text() const;
    static constexpr const char* what_is_cut = "their ends were left out";

private:
    SequenceEncoder encoder_;
    const LabellingOptions& options_;
    std::int64_t pieces_ = 0;
};

}  // namespace hetseq
