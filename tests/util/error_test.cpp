#include "hetseq/util/error.hpp"

#include <cerrno>
#include <new>
#include <system_error>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(ErrorTest, SaysProblemWhyAndWhatToDo) {
    const BadData error("a.h5 is truncated", "12 bytes of 40", "copy it again");

    EXPECT_STREQ(error.what(), "a.h5 is truncated (12 bytes of 40): copy it again");
    EXPECT_EQ(error.code(), ExitCode::bad_data);
}

TEST(ErrorTest, LeavesOutWhatIsNotGiven) {
    EXPECT_STREQ(MissingInput("no such file: a.h5").what(), "no such file: a.h5");
    EXPECT_STREQ(BadUsage("no command", "", "try hetseq --help").what(),
                 "no command: try hetseq --help");
}

// The contents of a damaged file neither act on the terminal nor end the text.
TEST(ErrorTest, ShowsControlCharactersAndCutsWhatIsEndless) {
    EXPECT_STREQ(BadData(std::string("'a\0b\x1b[2J\x7f'", 10), "two\nlines").what(),
                 "'a\\x00b\\x1b[2J\\x7f' (two\nlines)");
    const std::string text = BadData(std::string(1 << 20, 'x'), "why", "what to do").what();
    EXPECT_LT(text.size(), 5000u);
    EXPECT_NE(text.find("xxx... (1048576 bytes in all) (why): what to do"), std::string::npos);
}

TEST(MessageTest, LeavesOutStackFrames) {
    const std::runtime_error error(
        "sizes differ\nException raised from add at add.cpp:3\nframe #0: x");

    EXPECT_EQ(message_of(error), "sizes differ");
    EXPECT_EQ(message_of(BadData("a.h5 is truncated")), "a.h5 is truncated");
}

constexpr const char* allocator_text =
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 8000000000000 bytes. Error code 12 (Cannot allocate memory)\nException "
    "raised from alloc_cpu at alloc_cpu.cpp:127\nframe #0: x";

// Of the standard library, and of LibTorch.
TEST(MessageTest, MemoryThatCannotBeHadIsCalledMemory) {
    for (const std::string& text :
         {message_of(std::bad_alloc{}), message_of(std::runtime_error(allocator_text))}) {
        EXPECT_EQ(text.find("this process cannot get more memory ("), 0) << text;
        EXPECT_NE(text.find("ulimit -v"), std::string::npos) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
}

// As where another rank, or a caller, has explained it.
TEST(MessageTest, WhatIsExplainedIsNotExplainedAgain) {
    const std::runtime_error plain(allocator_text);

    const Error told(ExitCode::internal, message_of(plain));
    const DeviceError wrapped("no room for a sample", reason_of(plain), "use a larger device");

    EXPECT_EQ(message_of(told), message_of(plain));
    EXPECT_EQ(message_of(wrapped),
              "no room for a sample (DefaultCPUAllocator: can't allocate memory: you tried to "
              "allocate 8000000000000 bytes. Error code 12 (Cannot allocate memory)): use a larger "
              "device");
}

TEST(ReasonTest, IsTheFirstLine) {
    EXPECT_EQ(reason_of(std::runtime_error("CUDA out of memory.\nException raised from x")),
              "CUDA out of memory.");
    EXPECT_EQ(reason_of(BadData("a.h5 is truncated")), "a.h5 is truncated");
}

TEST(MessageTest, AThreadThatCannotBeHadIsCalledAThread) {
    const std::system_error error(EAGAIN, std::generic_category());

    EXPECT_EQ(message_of(error).find("this process cannot get another thread ("), 0);
    EXPECT_EQ(message_of(std::system_error(ENOENT, std::generic_category())),
              "No such file or directory");
}

TEST(AssertTest, NamesConditionAndPlace) {
    try {
        HETSEQ_ASSERT(1 == 2);
        FAIL() << "did not throw";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::internal);
        EXPECT_NE(std::string(error.what()).find("1 == 2"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("error_test.cpp:"), std::string::npos);
    }
}

}  // namespace
}  // namespace hetseq
