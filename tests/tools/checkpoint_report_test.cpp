#include "hetseq/tools/checkpoint_report.hpp"

#include <cstdint>
#include <filesystem>

#include <gtest/gtest.h>

#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/manifest.hpp"
#include "hetseq/state/checkpoint_folder.hpp"
#include "hetseq/state/training_state.hpp"

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using testing::HasSubstr;

class CheckpointReportTest : public testing::Test {
protected:
    void save(std::int64_t update, double loss, std::int64_t best_update) const {
        TrainingState state;
        state.progress.updates = update;
        state.progress.last_valid = Evaluation{.losses = {{"nll", loss}}};
        state.progress.best_update = best_update;
        const CheckpointFolder checkpoints(run_ / "checkpoints");
        const auto path = checkpoints.begin(update);
        const FileDigest digest =
            write_atomically(path / TrainingState::file_name, training_state_json(state));
        checkpoints.commit(update, {{{TrainingState::file_name, digest}}});
    }
    nlohmann::json list() const {
        return nlohmann::json::parse(list_checkpoints(checkpoints_of(run_.path()), true));
    }
    // The updates of those that are called best.
    std::vector<std::int64_t> best() const {
        std::vector<std::int64_t> updates;
        for (const auto& entry : list())
            if (entry.at("best"))
                updates.push_back(entry.at("update"));
        return updates;
    }

    test::TemporaryFolder run_;
};

using Updates = std::vector<std::int64_t>;

// Each was the best when it was taken.
TEST_F(CheckpointReportTest, OneIsTheBest) {
    save(1, 3, 1);
    save(2, 2, 2);
    save(3, 1, 3);
    EXPECT_EQ(best(), Updates{3});
    save(4, 2, 3);
    EXPECT_EQ(best(), Updates{3});
}

TEST_F(CheckpointReportTest, NoneIsTheBestWhereThatWentOrNoneWasValidated) {
    save(1, 3, 0);
    EXPECT_EQ(best(), Updates{});
    save(4, 2, 2);
    EXPECT_EQ(best(), Updates{});
}

TEST_F(CheckpointReportTest, TheListHasTheValidationLoss) {
    save(1, 0.5, 1);
    save(2, std::numeric_limits<double>::quiet_NaN(), 1);

    const nlohmann::json entries = list();

    EXPECT_TRUE(entries.at(0).at("valid_loss").is_null());
    EXPECT_EQ(entries.at(1).at("valid_loss"), 0.5);
}

TEST_F(CheckpointReportTest, AFileThatIsGoneOrCutIsAProblem) {
    save(1, 0.5, 1);
    save(2, 0.5, 1);
    save(3, 0.5, 1);
    const CheckpointFolder checkpoints(run_ / "checkpoints");
    const auto add = [&](std::int64_t update) {
        const auto path = checkpoints.of_update(update);
        Manifest manifest = read_manifest(path);
        manifest.files["optimizer.safetensors"] =
            write_atomically(path / "optimizer.safetensors", "moments");
        write_atomically(path / Manifest::file_name, manifest_json(manifest));
        return path / "optimizer.safetensors";
    };
    add(1);
    std::filesystem::remove(add(2));
    std::filesystem::resize_file(add(3), 3);

    const nlohmann::json entries = list();

    EXPECT_EQ(entries.at(2).at("problem"), "");
    EXPECT_THAT(entries.at(1).at("problem"), HasSubstr("optimizer.safetensors"));
    EXPECT_THAT(entries.at(0).at("problem"), HasSubstr("optimizer.safetensors has 3 bytes"));
}

}  // namespace
}  // namespace hetseq
