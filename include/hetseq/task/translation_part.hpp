#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "hetseq/text/vocabulary.hpp"
#include "hetseq/model/decoding/translator.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq {

/// A model that `hetseq translate` takes lines of text through.
struct TranslationModel {
    std::shared_ptr<Model> network;  // whose parameters the translator may use
    Translator translator;
    Vocabulary source, target;
};

/// Makes it from the run in `folder`. `load` gives the network its parameters, in the type and on
/// the device that are asked for; the part calls it once, before it makes the translator. Throws
/// BadData for files that do not belong together.
using TranslationPart = std::function<TranslationModel(
    const std::filesystem::path& folder, const std::function<void(Model& network)>& load)>;

}  // namespace hetseq
