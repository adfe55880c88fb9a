// set_loss_scale CHECKPOINT VALUE: the run that continues from this folder begins with this loss
// scale. Exit codes: 0 done, 1 it is no checkpoint with a loss scale, 64 usage.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/state/training_state.hpp"

int main(int argc, char** argv) {
    using namespace hetseq;
    if (argc != 3)
        return 64;
    try {
        const std::filesystem::path folder = argv[1];
        TrainingState state = read_training_state(folder);
        state.progress.loss_scale.value().value = std::stod(argv[2]);
        Manifest manifest = read_manifest(folder);
        manifest.files.at(TrainingState::file_name) =
            write_atomically(folder / TrainingState::file_name, training_state_json(state));
        write_atomically(folder / Manifest::file_name, manifest_json(manifest));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
