#include "token_documents.hpp"

namespace hetseq {

void TokenDocuments::add_sentence(std::span<const std::int32_t> ids) {
    if (ids.empty())
        return;
    tokens_.insert(tokens_.end(), ids.begin(), ids.end());
    sentences_.push_back(std::ssize(tokens_));
}

bool TokenDocuments::end_document() {
    if (documents_.back() == sentences())
        return false;
    documents_.push_back(sentences());
    return true;
}

}  // namespace hetseq
