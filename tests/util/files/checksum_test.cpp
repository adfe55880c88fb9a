#include "hetseq/util/files/checksum.hpp"

#include <string>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

// From the xxHash project's own sanity checks and its documentation: XXH64 of nothing, seed 0.
TEST(ChecksumTest, OfNothingIsThePublishedNumber) {
    EXPECT_EQ(checksum_text(Xxh64().digest()), "ef46db3751d8e999");
}

// `printf %s abc | xxhsum -H64`
TEST(ChecksumTest, PiecesGiveWhatTheWholeGives) {
    Xxh64 hash;
    hash.update("a", 1);
    hash.update("bc", 2);
    EXPECT_EQ(checksum_text(hash.digest()), "44bc2cf5ad770999");
}

TEST(ChecksumTest, AFileIsDigestedToItsEnd) {
    const test::TemporaryFolder folder;
    const std::string content(9 << 20, 'x');
    folder.write("a", content);

    const FileDigest digest = digest_of(folder / "a");

    Xxh64 hash;
    hash.update(content.data(), content.size());
    EXPECT_EQ(digest, (FileDigest{content.size(), hash.digest()}));
    EXPECT_THROW(digest_of(folder / "b"), MissingInput);
}

}  // namespace
}  // namespace hetseq
