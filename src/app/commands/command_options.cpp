#include "command_options.hpp"

#include "hetseq/tools/checkpoint_command.hpp"
#include "hetseq/session/step_counts.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t most = 1'000'000;  // of whatever is counted here

OptionsOf<BeamOptions> beam_options() {
    return OptionsOf<BeamOptions>()
        .add(&BeamOptions::beam,
             whole_number_option("beam",
                                 "5",
                                 "translations of a sentence that are followed at once; 1: greedy",
                                 1,
                                 1000))
        .add(&BeamOptions::hypotheses,
             whole_number_option(
                 "nbest", "1", "translations written for each line, best first", 1, 1000))
        .add(
            &BeamOptions::length_penalty,
            number_option(
                "length-penalty", "1", "a score is divided by the length to this power", -100, 100))
        .add(&BeamOptions::length_factor,
             number_option("max-len-a",
                           "0",
                           "a translation has at most A n + B tokens, n the source's",
                           0,
                           1000))
        .add(&BeamOptions::length_constant,
             whole_number_option("max-len-b", "200", "B of --max-len-a", 0, most))
        .add(&BeamOptions::min_length,
             whole_number_option("min-len", "1", "a translation has at least N tokens", 0, most))
        .add(&BeamOptions::unknown_penalty,
             number_option(
                 "unk-penalty", "0", "taken from the score of each unknown token", -1000, 1000));
}

}  // namespace

OptionsOf<EvaluateOptions> evaluate_options() {
    return OptionsOf<EvaluateOptions>().add(&EvaluateOptions::checkpoint, checkpoint_option());
}

OptionsOf<PredictOptions> predict_options() {
    return OptionsOf<PredictOptions>()
        .add(&PredictOptions::output,
             text_option("output",
                         "FILE",
                         "",
                         "the HDF5 file to write; without it and --data, lines of standard input "
                         "are answered with labels"))
        .add(&PredictOptions::checkpoint, checkpoint_option())
        .add(&PredictOptions::batch_samples,
             whole_number_option(
                 "batch-size", "64", "samples or lines computed together, on every rank", 1, most))
        .add(&PredictOptions::overwrites,
             switch_option("overwrite", "replace the file where it exists"));
}

OptionsOf<TranslateOptions> translate_options() {
    using Of = TranslateOptions;
    return OptionsOf<Of>()
        .add(&Of::checkpoint, checkpoint_option())
        .add(&Of::beam, beam_options())
        .add(&Of::print_scores,
             switch_option("print-scores", "write each translation's score and a tab before it"))
        .add(&Of::batch_sentences,
             whole_number_option(
                 "batch-sentences", "64", "sentences translated together at most", 1, most))
        .add(&Of::batch_source_tokens,
             whole_number_option("batch-source-tokens",
                                 "4096",
                                 "source tokens translated together at most",
                                 1,
                                 most));
}

OptionsOf<RooflineOptions> roofline_options() {
    std::vector<std::pair<std::string, std::string>> gpus{{"", ""}};
    for (const GpuPeaks& gpu : gpu_peaks())
        gpus.emplace_back(gpu.name, gpu.name);
    return OptionsOf<RooflineOptions>().add(
        &RooflineOptions::device,
        named_value_option<std::string>(
            "device", gpus, "", "the GPU; without it all of them, and no cost for a plan")
            .shown_as("h100|a100|v100|p100"));
}

OptionsOf<PlanOptions> plan_options() {
    return OptionsOf<PlanOptions>()
        .add(&PlanOptions::runs,
             files_option("from", "folders of runs whose measured speeds are used")
                 .shown_as("RUN[,RUN...]"))
        .add(&PlanOptions::json, json_option());
}

OptionsOf<InfoOptions> info_options() {
    return OptionsOf<InfoOptions>().add(&InfoOptions::json, json_option());
}

}  // namespace hetseq
