#pragma once

#include <string>
#include <vector>

namespace hetseq {

/// The words of --precision: "auto" and those of all precisions.
std::vector<std::string> precision_choices();

}  // namespace hetseq
