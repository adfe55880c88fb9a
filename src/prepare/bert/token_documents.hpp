#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetseq {

/// [begin, end)
struct IndexRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    std::int64_t size() const { return end - begin; }
    friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// The sentences of documents as ids, end to end.
class TokenDocuments {
public:
    /// The next sentence of the document that is not ended yet. One without ids is left out.
    void add_sentence(std::span<const std::int32_t> ids);
    /// False if it has no sentences; then there is no such document.
    bool end_document();

    /// Documents that are ended.
    std::int64_t size() const { return std::ssize(documents_) - 1; }
    /// All sentences together; those of a document, in its order, none empty.
    std::int64_t sentences() const { return std::ssize(sentences_) - 1; }
    IndexRange sentences_of(std::int64_t document) const {
        const auto i = static_cast<std::size_t>(document);
        return {documents_[i], documents_[i + 1]};
    }
    /// Where the sentence begins in `tokens`. It ends where the next one begins.
    std::int64_t begin_of(std::int64_t sentence) const {
        return sentences_[static_cast<std::size_t>(sentence)];
    }
    std::span<const std::int32_t> tokens() const { return tokens_; }
    std::span<const std::int32_t> tokens(const IndexRange& range) const {
        return tokens().subspan(static_cast<std::size_t>(range.begin),
                                static_cast<std::size_t>(range.size()));
    }

private:
    std::vector<std::int32_t> tokens_;
    std::vector<std::int64_t> sentences_{0};  // where each begins, and the end
    std::vector<std::int64_t> documents_{0};  // the first sentence of each, and the end
};

}  // namespace hetseq
