#include "hetseq/prepare/bert/masking_vocabulary.hpp"

namespace hetseq {

MaskingVocabulary masking_vocabulary(const WordPiece& pieces) {
    MaskingVocabulary vocabulary{.size = pieces.size(),
                                 .mask = pieces.id_of("[MASK]"),
                                 .begin = pieces.id_of("[CLS]"),
                                 .separator = pieces.id_of("[SEP]")};
    for (std::int32_t id = 0; id < pieces.size(); ++id)
        vocabulary.continues.push_back(pieces.continues_word(id));
    return vocabulary;
}

}  // namespace hetseq
