#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/train/record/run_folder.hpp"

#include "test_world.hpp"
#include "train/pipeline/staged_run.hpp"
#include "train/toy_run.hpp"

namespace hetseq::test {

/// Runs of all ranks on one corpus, and a folder for what they save.
class StagedTest : public testing::Test {
protected:
    static void SetUpTestSuite() {
        world = new HostComm(test::world());
        corpus = new std::string(write_toy_corpus(*world, samples));
    }
    static void TearDownTestSuite() {
        remove_toy_corpus(*world, *corpus);
        delete corpus;
        delete world;
    }
    ~StagedTest() override {
        world->barrier();
        if (world->rank() == 0)
            std::filesystem::remove_all(base_);
    }

    /// `run` on all ranks, whose last checkpoint's folder it returns. `stops_at`: the update that
    /// it stops at; 0: its last.
    std::filesystem::path trained(StagedRun run,
                                  const std::string& name,
                                  std::int64_t stops_at = 0) const {
        RunFolder folder(*world, base_ / name, ExistingRun::overwrite);
        folder.begin(*world, "", {});
        run.folder = &folder;
        run.saves = true;
        train_staged(run, *world);
        world->barrier();
        return folder.checkpoints().of_update(stops_at > 0 ? stops_at : run.updates);
    }

    static inline HostComm* world = nullptr;
    static inline std::string* corpus = nullptr;
    std::filesystem::path base_ = world->broadcast(
        (std::filesystem::temp_directory_path() / ("hetseq_staged_" + std::to_string(::getpid())))
            .string(),
        0);
};

}  // namespace hetseq::test
