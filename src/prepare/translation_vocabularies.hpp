#pragma once

#include <span>

#include "hetseq/text/vocabulary.hpp"
#include "hetseq/prepare/files/text_index.hpp"

namespace hetseq {

class HostComm;
struct PrepareTranslationOptions;

struct TranslationVocabularies {
    Vocabulary source;
    Vocabulary target;

    bool are_one() const { return source.bytes() == target.bytes(); }
};

/// Collective. Those that the options name, or ones trained on the texts: SentencePiece models on
/// rank 0, since unlike machines round differently; dictionaries on all ranks, which count words.
/// The same on all ranks. Throws as prepare_translation does.
TranslationVocabularies translation_vocabularies(const HostComm& world,
                                                 const PrepareTranslationOptions& options,
                                                 std::span<const TextIndex> sources,
                                                 std::span<const TextIndex> targets);

}  // namespace hetseq
