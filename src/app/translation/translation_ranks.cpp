#include "translation_ranks.hpp"

#include "app/lines/line_dispatcher.hpp"

namespace hetseq {

TranslatedBatch translated(Translator& translator,
                           const TranslationBatch& batch,
                           const BeamOptions& options) {
    return {batch.number, translator.translate(batch.sources, options)};
}

void serve_translations(Mailbox& mailbox, Translator& translator, const BeamOptions& options) {
    for (;;) {
        const Mailbox::Message message = mailbox.wait();
        if (message.bytes.empty())
            return;
        const TranslationBatch batch = batch_from_bytes(message.bytes);
        mailbox.send(message.from, to_bytes(translated(translator, batch, options)));
    }
}

std::exception_ptr run_translation(Mailbox& mailbox,
                                   TranslationWorker& own,
                                   LineSource& input,
                                   TextTranslation& text,
                                   const std::function<void()>& progress) {
    return LineDispatcher<TextTranslation>(mailbox, own, input, text).run(progress);
}

}  // namespace hetseq
