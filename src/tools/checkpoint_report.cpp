#include "hetseq/tools/checkpoint_report.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/util/files/safetensors.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/state/checkpoint_folder.hpp"
#include "hetseq/state/existing_folder.hpp"
#include "hetseq/state/training_state.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

std::uint64_t bytes_of(const Manifest& manifest) {
    std::uint64_t sum = 0;
    for (const auto& [name, digest] : manifest.files)
        sum += digest.bytes;
    return sum;
}

std::string evaluation_text(const std::optional<Evaluation>& evaluation) {
    return evaluation ? format_number(evaluation->loss(), 5) : "";
}

// The last validation may have been updates ago. Earlier versions did not say when it was.
bool is_of_this_update(const TrainingProgress& progress) {
    return progress.last_valid_update == progress.updates || progress.last_valid_update == 0;
}

// One line of the list: a checkpoint, or its problem if it cannot be read.
struct Row {
    std::string path;
    std::int64_t update = 0, epochs = 0, samples = 0, best_update = 0;
    std::uint64_t bytes = 0;
    std::optional<double> valid_loss;  // none: it was not validated at this update
    std::string problem;
};

Row read_row(const fs::path& checkpoint) {
    Row row;
    row.path = checkpoint.string();
    try {
        const Manifest manifest = read_manifest(checkpoint);
        row.bytes = bytes_of(manifest);
        for (const auto& [name, digest] : manifest.files)
            verify_length(checkpoint, name, digest);
        const TrainingProgress progress = read_training_state(checkpoint).progress;
        row.update = progress.updates;
        row.epochs = progress.epochs;
        row.samples = progress.samples;
        row.best_update = progress.best_update;
        if (progress.last_valid && is_of_this_update(progress))
            row.valid_loss = progress.last_valid->loss();
    } catch (const Error& error) {
        row.problem = error.what();
    }
    return row;
}

std::vector<Row> read_rows(const std::vector<fs::path>& checkpoints) {
    std::vector<Row> rows;
    for (const fs::path& checkpoint : checkpoints)
        rows.push_back(read_row(checkpoint));
    return rows;
}

// As the newest readable checkpoint says: an older one may have been the best of its time.
std::int64_t best_update(const std::vector<Row>& rows) {
    const Row* newest = nullptr;
    for (const Row& row : rows)
        if (row.problem.empty() && (newest == nullptr || row.update > newest->update))
            newest = &row;
    return newest != nullptr ? newest->best_update : 0;
}

std::string verify(const fs::path& checkpoint) {
    try {
        for (const auto& [name, digest] : read_manifest(checkpoint).files)
            verify_file(checkpoint, name, digest);
        read_training_state(checkpoint);
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

}  // namespace

std::vector<fs::path> checkpoints_of(const fs::path& path) {
    check_folder(path);
    std::vector<fs::path> checkpoints = checkpoints_at(path);
    if (checkpoints.empty())
        throw MissingInput(path.string() + " holds no checkpoint",
                           "neither it nor its folder 'checkpoints' holds one",
                           "give a run's folder or a checkpoint");
    return checkpoints;
}

std::vector<fs::path> regular_checkpoints_of(const fs::path& path) {
    const std::vector<fs::path> all = checkpoints_of(path);
    std::vector<fs::path> regular = all;
    std::erase_if(regular, is_timed);
    return regular.empty() ? all : regular;
}

std::string list_checkpoints(const std::vector<fs::path>& checkpoints, bool json) {
    Json list = Json::array();
    std::vector<std::vector<std::string>> table{
        {"checkpoint", "epochs", "samples", "valid loss", "MB", ""}};
    const std::vector<Row> rows = read_rows(checkpoints);
    const std::int64_t best = best_update(rows);
    for (const Row& row : rows) {
        const bool is_best = row.problem.empty() && row.update > 0 && row.update == best;
        list.push_back({{"path", row.path},
                        {"update", row.update},
                        {"epochs", row.epochs},
                        {"samples", row.samples},
                        {"valid_loss", row.valid_loss ? Json(*row.valid_loss) : Json()},
                        {"bytes", row.bytes},
                        {"best", is_best},
                        {"problem", row.problem}});
        table.push_back({fs::path(row.path).filename().string(),
                         std::to_string(row.epochs),
                         std::to_string(row.samples),
                         row.valid_loss ? format_number(*row.valid_loss, 5) : "",
                         format_number(static_cast<double>(row.bytes) / 1e6),
                         row.problem.empty() ? (is_best ? "best" : "") : row.problem});
    }
    return json ? json_text(list, 2) + "\n" : format_table(table);
}

std::string verify_checkpoints(const std::vector<fs::path>& checkpoints, int& damaged) {
    std::vector<std::vector<std::string>> rows{{"checkpoint", ""}};
    for (const fs::path& checkpoint : checkpoints) {
        const std::string problem = verify(checkpoint);
        damaged += problem.empty() ? 0 : 1;
        rows.push_back({checkpoint.filename().string(), problem.empty() ? "whole" : problem});
    }
    return format_table(rows);
}

std::string inspect_checkpoint(const fs::path& checkpoint) {
    const Manifest manifest = read_manifest(checkpoint);
    const TrainingState state = read_training_state(checkpoint);
    const TrainingProgress& progress = state.progress;
    std::string text = checkpoint.string() + "\nupdates " + std::to_string(progress.updates) +
                       ", epochs " + std::to_string(progress.epochs) + ", samples " +
                       std::to_string(progress.samples) + ", skipped " +
                       std::to_string(progress.skipped) + "\nsaved by " +
                       std::to_string(state.run.devices.size()) +
                       " ranks: " + join(state.run.devices, ", ") + "\ncorpus of " +
                       std::to_string(state.run.samples) + " samples (" + state.run.corpus + ")\n";
    if (progress.last_valid)
        text += "last validation: loss " + evaluation_text(progress.last_valid) +
                (progress.last_valid_update > 0
                     ? ", at update " + std::to_string(progress.last_valid_update)
                     : "") +
                "\n";
    if (progress.best_valid)
        text += "best validation: loss " + evaluation_text(progress.best_valid) + ", at update " +
                std::to_string(progress.best_update) + "\n";
    text += "\nOptions\n";
    for (const auto& [name, value] : state.run.options)
        if (!value.empty())
            text += "  " + name + " = " + value + "\n";
    std::vector<std::vector<std::string>> rows{{"file", "tensor", "type", "shape"}};
    for (const auto& [name, digest] : manifest.files) {
        if (fs::path(name).extension() != ".safetensors")
            continue;
        const SafetensorsReader file(checkpoint / name);
        for (const SafetensorEntry& entry : file.entries())
            rows.push_back({name, entry.name, name_of(entry.type), shape_text(entry.shape)});
    }
    return text + "\n" + format_table(rows);
}

}  // namespace hetseq
