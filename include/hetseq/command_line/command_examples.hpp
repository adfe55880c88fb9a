#pragma once

#include <string>

namespace hetseq {

/// A call that shows what a command is for, and the page that tells more.
struct CommandExample {
    std::string line;
    std::string page;  // "docs/data.md"
};

/// Of the command's form `word`. Null where there is none.
const CommandExample* find_example(const std::string& command, const std::string& word);

}  // namespace hetseq
