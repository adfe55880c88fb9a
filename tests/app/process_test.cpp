#include "hetseq/app/process.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(KeepFewKernelsTest, OnlyWhatTheEnvironmentDoesNotSayIsSet) {
    ::unsetenv("LRU_CACHE_CAPACITY");
    ::setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7", 1);

    keep_few_kernels();

    EXPECT_STREQ(std::getenv("LRU_CACHE_CAPACITY"), "128");
    EXPECT_STREQ(std::getenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY"), "7");
}

}  // namespace
}  // namespace hetseq
