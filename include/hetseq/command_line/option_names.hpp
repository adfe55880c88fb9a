#pragma once

#include <span>
#include <string>
#include <vector>

namespace hetseq {

/// The name that another program (fairseq, HetSeq, PyTorch, Hugging Face) has for an option of
/// hetseq.
struct OtherName {
    std::string name;    // without dashes: "learning-rate"
    std::string option;  // ours: "lr"
};
const std::vector<OtherName>& other_names();

/// What the user may have meant by the unknown option `given`: "did you mean --lr?", or how to do
/// the same without an option. Empty if nothing is near. `known`: names without dashes.
std::string meant_option(const std::string& given, std::span<const std::string> known);

}  // namespace hetseq
