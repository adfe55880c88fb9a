#pragma once

#include <string>

#include "hetseq/options/options_of.hpp"
#include "hetseq/command_line/command_words.hpp"

namespace hetseq {

struct ReportOptions {
    std::string output{};  // the file to write
};

OptionsOf<ReportOptions> report_options();

/// `hetseq report`: one page of one or several runs. Returns the exit code.
int report_command(const CommandWords& words);

}  // namespace hetseq
