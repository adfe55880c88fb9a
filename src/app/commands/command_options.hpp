#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/options/options_of.hpp"
#include "hetseq/model/decoding/beam_search.hpp"

/// The options that one command alone has.
namespace hetseq {

struct EvaluateOptions {
    std::string checkpoint{};  // as --checkpoint names it; empty: none was given
};
OptionsOf<EvaluateOptions> evaluate_options();

struct PredictOptions {
    std::string output{};  // the HDF5 file; empty: lines to standard output
    std::string checkpoint{};
    std::int64_t batch_samples = 64;  // together, on every rank
    bool overwrites = false;
};
OptionsOf<PredictOptions> predict_options();

struct TranslateOptions {
    std::string checkpoint{};
    BeamOptions beam{};
    bool print_scores = false;
    std::int64_t batch_sentences = 64;
    std::int64_t batch_source_tokens = 4096;
};
OptionsOf<TranslateOptions> translate_options();

struct RooflineOptions {
    std::string device{};  // a GPU's name; empty: all that are known
};
OptionsOf<RooflineOptions> roofline_options();

struct PlanOptions {
    std::vector<std::string> runs{};  // folders whose measured speeds are used
    bool json = false;
};
OptionsOf<PlanOptions> plan_options();

struct InfoOptions {
    bool json = false;
};
OptionsOf<InfoOptions> info_options();

}  // namespace hetseq
