#include "hetseq/text/vocabulary.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/plain_text.hpp"

#include "vocabulary_kind.hpp"

namespace hetseq {

namespace {

// The first byte of a SentencePiece model: the tag of its first piece.
constexpr char sentence_piece_tag = '\x0a';

std::unique_ptr<const VocabularyKind> make_kind(std::string_view bytes, const std::string& origin) {
    if (is_dictionary(bytes))
        return make_dictionary(bytes, origin);
    if (!bytes.empty() && bytes.front() == sentence_piece_tag)
        return make_sentence_piece(bytes, origin);
    begin_of_text(bytes, origin);
    throw BadData(origin + " is not a vocabulary",
                  "it begins neither as a SentencePiece model nor as a dictionary",
                  "name a file that hetseq prepare translation wrote, or a SentencePiece .model");
}

}  // namespace

struct Vocabulary::State {
    State(std::string given, const std::string& origin)
        : bytes{std::move(given)}, kind{make_kind(bytes, origin)} {
        Xxh64 hash;
        hash.update(bytes.data(), bytes.size());
        checksum = hash.digest();
    }

    std::string bytes;
    std::unique_ptr<const VocabularyKind> kind;
    std::uint64_t checksum = 0;
};

Vocabulary Vocabulary::parse(std::string bytes, const std::string& origin) {
    return Vocabulary{std::make_shared<const State>(std::move(bytes), origin)};
}

Vocabulary Vocabulary::read(const std::filesystem::path& file) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
        throw MissingInput("no such file: " + file.string(), "", "name a vocabulary");
    check_text_file(file);
    std::ifstream stream{file, std::ios::binary};
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    if (!stream)
        throw IoError("cannot read " + file.string(), std::strerror(errno), "check the file");
    return parse(std::move(bytes).str(), file.string());
}

std::int64_t Vocabulary::size() const {
    return state_->kind->size();
}

void Vocabulary::encode(std::string_view line, std::vector<std::int32_t>& ids) const {
    state_->kind->encode(line, ids);
}

std::string Vocabulary::decode(std::span<const std::int32_t> ids) const {
    std::vector<std::int32_t> shown;
    for (const std::int32_t id : ids) {
        HETSEQ_ASSERT(id >= 0 && id < size());
        if (id != begin() && id != end())
            shown.push_back(id);
    }
    return state_->kind->decode(shown);
}

std::string Vocabulary::piece(std::int32_t id) const {
    HETSEQ_ASSERT(id >= 0 && id < size());
    return state_->kind->piece(id);
}

const std::string& Vocabulary::bytes() const {
    return state_->bytes;
}

std::uint64_t Vocabulary::checksum() const {
    return state_->checksum;
}

}  // namespace hetseq
