#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "data/generated_corpus.hpp"
#include "data/text_files.hpp"
#include "test_world.hpp"

namespace hetseq::test {

/// Tests of text files that rank 0 writes to a folder and all ranks read.
class TextFilesTest : public testing::Test {
protected:
    /// The path of a new file with `text`, compressed where its name ends with ".gz".
    std::string file(const std::string& name, const std::string& text) {
        if (world_.rank() == 0)
            write_text(folder_ / name, text, name.ends_with(".gz"));
        world_.barrier();
        return folder_ / name;
    }

    /// The files of a folder: name, bytes.
    static std::map<std::string, std::string> contents(const std::string& folder) {
        std::map<std::string, std::string> files;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            std::ifstream stream{entry.path(), std::ios::binary};
            files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(stream), {}};
        }
        return files;
    }

    HostComm world_ = test::world();
    SharedFolder folder_{world_};
};

}  // namespace hetseq::test
