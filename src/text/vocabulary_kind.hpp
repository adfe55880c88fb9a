#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// What a Vocabulary does, by its kind. `ids` given to it are ids of the vocabulary.
class VocabularyKind {
public:
    virtual ~VocabularyKind() = default;
    virtual std::int64_t size() const = 0;
    virtual void encode(std::string_view line, std::vector<std::int32_t>& ids) const = 0;
    virtual std::string decode(const std::vector<std::int32_t>& ids) const = 0;
    virtual std::string piece(std::int32_t id) const = 0;
};

/// Both keep views of `bytes`, which must outlive them. Throw BadData that names `origin`.
std::unique_ptr<const VocabularyKind> make_sentence_piece(std::string_view bytes,
                                                          const std::string& origin);
std::unique_ptr<const VocabularyKind> make_dictionary(std::string_view bytes,
                                                      const std::string& origin);

/// Whether the bytes begin as a dictionary does.
bool is_dictionary(std::string_view bytes) noexcept;

}  // namespace hetseq
