#pragma once

#include <string>

#include <gtest/gtest.h>

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "test_world.hpp"

namespace hetseq::test {

/// Tests of files that rank 0 writes to a folder and all ranks read.
class SharedFolderTest : public testing::Test {
protected:
    template <class Function>
    void on_first_rank(Function&& function) {
        agree_on(world_, [&] {
            if (world_.rank() == 0)
                function();
        });
    }

    void expect_same_on_all_ranks(const Thrown& thrown) {
        for (const std::string& other : world_.all_gather(thrown.text))
            EXPECT_EQ(other, thrown.text);
    }

    HostComm world_ = test::world();
    SharedFolder folder_{world_};
};

}  // namespace hetseq::test
