#pragma once

#include <exception>
#include <functional>

#include "hetseq/comm/mailbox.hpp"
#include "hetseq/model/decoding/translator.hpp"

#include "app/lines/line_source.hpp"
#include "app/own_worker.hpp"
#include "text_translation.hpp"

namespace hetseq {

using TranslationWorker = OwnWorker<TranslationBatch, TranslatedBatch>;

/// Translates a batch.
TranslatedBatch translated(Translator& translator,
                           const TranslationBatch& batch,
                           const BeamOptions& options);

/// Translates on ranks other than 0 what rank 0 hands out, until it says that there is no more.
void serve_translations(Mailbox& mailbox, Translator& translator, const BeamOptions& options);

/// The whole job on rank 0: reads lines, hands out batches to ranks as they get free, itself
/// included, and writes to standard output. Input that pauses is translated as it came. At the end
/// the other ranks are told. Returns an error of the input, or null; what comes before it was
/// translated. `progress` is called now and then.
std::exception_ptr run_translation(Mailbox& mailbox,
                                   TranslationWorker& own,
                                   LineSource& input,
                                   TextTranslation& text,
                                   const std::function<void()>& progress);

}  // namespace hetseq
