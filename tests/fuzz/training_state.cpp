// state.json of a checkpoint: what is read and written again reads the same.
#include "hetseq/state/training_state.hpp"

#include "fuzz/fuzz.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text{fuzz::text_of(data, size)};
    const auto state =
        fuzz::parsed([&] { return parse_training_state(text, TrainingState::file_name); });
    if (!state)
        return 0;
    const std::string written = training_state_json(*state);
    FUZZ_CHECK(training_state_json(parse_training_state(written, TrainingState::file_name)) ==
               written);
    return 0;
}
