#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// Text as ids: a SentencePiece model, or a dictionary of the words of text that is segmented
/// already. Cheap to copy (shared, immutable). Several threads may use one.
class Vocabulary {
public:
    /// Tells the kind by the first bytes. Throws BadData that names `origin`.
    static Vocabulary parse(std::string bytes, const std::string& origin);
    /// Throws MissingInput, IoError or BadData.
    static Vocabulary read(const std::filesystem::path& file);

    std::int64_t size() const;
    // The same ids in both kinds.
    std::int32_t unknown() const { return 0; }
    std::int32_t begin() const { return 1; }
    std::int32_t end() const { return 2; }

    /// Appends the ids of `line`, without `begin` and `end`. Bytes that are not UTF-8 are unknown.
    void encode(std::string_view line, std::vector<std::int32_t>& ids) const;
    /// Leaves `begin` and `end` out. A SentencePiece model gives plain text. A dictionary gives its
    /// words with blanks between, and joins a word with the next where its mark says so.
    std::string decode(std::span<const std::int32_t> ids) const;
    /// The text of one id, as the vocabulary holds it.
    std::string piece(std::int32_t id) const;

    /// What `parse` was given.
    const std::string& bytes() const;
    /// XXH64 of `bytes`.
    std::uint64_t checksum() const;

private:
    struct State;
    explicit Vocabulary(std::shared_ptr<const State> state) : state_{std::move(state)} {}
    std::shared_ptr<const State> state_;
};

}  // namespace hetseq
