#pragma once

#include <string_view>

namespace hetseq {

/// The texts of inputs/python/templates, put into the program when it is built.
extern const std::string_view classification_template, language_model_template;

}  // namespace hetseq
