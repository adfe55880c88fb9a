#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/state/checkpoint_folder.hpp"
#include "hetseq/state/training_state.hpp"

#include "test_world.hpp"

namespace hetseq::test {

inline TrainingState state_of(std::int64_t update) {
    TrainingState state;
    state.progress.updates = update;
    state.run.options["task"] = "toy";
    return state;
}

/// A folder that all ranks of the test share.
class CheckpointFixture : public testing::Test {
protected:
    CheckpointFixture()
        : base_{world_.broadcast((std::filesystem::temp_directory_path() /
                                  ("hetseq_checkpoint_" + std::to_string(::getpid())))
                                     .string(),
                                 0)},
          checkpoints_{base_ / "checkpoints"},
          communicator_{make_communicator(world_, environment(), at::kCPU)} {
        on_rank_0([&] { std::filesystem::create_directories(base_); });
    }
    ~CheckpointFixture() override {
        on_rank_0([&] { std::filesystem::remove_all(base_); });
    }

    void on_rank_0(const std::function<void()>& work) const {
        world_.barrier();
        if (world_.rank() == 0)
            work();
        world_.barrier();
    }

    HostComm world_ = test::world();
    std::filesystem::path base_;
    CheckpointFolder checkpoints_;
    std::unique_ptr<Communicator> communicator_;
};

}  // namespace hetseq::test
