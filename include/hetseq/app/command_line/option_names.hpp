#pragma once

#include <span>
#include <string>
#include <vector>

namespace hetseq {

/// What other programs (fairseq, HetSeq, PyTorch, Hugging Face) call an option of ours.
struct OtherName {
    std::string name;    // without dashes: "learning-rate"
    std::string option;  // ours: "lr"
};
const std::vector<OtherName>& other_names();

/// What somebody who wrote the unknown option `given` may have meant: "did you mean --lr?", or how
/// the same is done without an option. Empty where nothing is near. `known`: names without dashes.
std::string meant_option(const std::string& given, std::span<const std::string> known);

}  // namespace hetseq
