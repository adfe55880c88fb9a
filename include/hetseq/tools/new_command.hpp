#pragma once

#include <string>

#include "hetseq/options/options_of.hpp"
#include "hetseq/command_line/command_words.hpp"

namespace hetseq {

/// What `hetseq new` writes.
struct TemplateOptions {
    std::string kind{};  // classification or language-model
};

OptionsOf<TemplateOptions> template_options();

/// `hetseq new`: a task in Python that runs as it is, to be changed. Returns the exit code.
int new_command(const CommandWords& words);

}  // namespace hetseq
