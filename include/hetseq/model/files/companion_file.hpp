#pragma once

#include <string>

namespace hetseq {

/// A small file that stands beside a model's parameters.
struct CompanionFile {
    std::string name;
    std::string content;
};

}  // namespace hetseq
