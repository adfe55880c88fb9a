#include "hetseq/data/files/attachment.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/checksum.hpp"
#include "hetseq/data/files/shard_header.hpp"

#include "data/generated_corpus.hpp"

namespace hetseq {
namespace {

using namespace test;

const std::string content = "\n\rwords\0of any bytes\xff";

std::uint64_t checksum_of(const std::string& bytes) {
    Xxh64 checksum;
    checksum.update(bytes.data(), bytes.size());
    return checksum.digest();
}

CorpusSchema schema_with(std::uint64_t xxh64) {
    return {.kind = "words",
            .fields = {{.name = "ids", .type = ElementType::int32}},
            .attachments = {{"vocabulary", xxh64, "the vocabulary of the run"}}};
}

class AttachmentTest : public testing::Test {
protected:
    // A shard of four ids and an attachment of this type and shape.
    void write(hid_t type = H5T_STD_U8LE, std::vector<hsize_t> shape = {content.size()}) {
        initialize_hdf5();
        const auto byte = [](std::int64_t row, std::int64_t) {
            return static_cast<std::int64_t>(
                static_cast<unsigned char>(content.at(static_cast<std::size_t>(row))));
        };
        write_datasets(path_,
                       {{{"ids", H5T_STD_I32LE, {4}, {}}, [](auto row, auto) { return row; }},
                        {{"vocabulary", type, std::move(shape), {}}, byte}});
    }

    std::string message_of(const CorpusSchema& schema) {
        try {
            read_shard_header(path_, schema);
        } catch (const BadData& error) {
            return error.what();
        }
        return "";
    }

    std::string path_ = (std::filesystem::path(testing::TempDir()) / "attachment.h5").string();
};

TEST_F(AttachmentTest, IsReadAsItWasWritten) {
    write();
    EXPECT_EQ(read_attachment(path_, "vocabulary"), content);
    EXPECT_EQ(message_of(schema_with(checksum_of(content))), "");
}

TEST_F(AttachmentTest, AnotherOneIsRefusedByName) {
    write();
    const std::string message = message_of(schema_with(checksum_of("other words")));
    EXPECT_NE(message.find("dataset 'vocabulary' is not the vocabulary of the run"),
              std::string::npos)
        << message;
}

TEST_F(AttachmentTest, AMissingOneIsRefused) {
    write();
    CorpusSchema schema = schema_with(checksum_of(content));
    schema.attachments.push_back({"other", 0, "another"});
    EXPECT_NE(message_of(schema).find("dataset 'other' is missing"), std::string::npos);
    EXPECT_THROW(read_attachment(path_, "other"), BadData);
    EXPECT_THROW(read_attachment(path_ + ".none", "vocabulary"), MissingInput);
}

TEST_F(AttachmentTest, ATruncatedFileIsCalledTruncated) {
    write();
    std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
    EXPECT_EQ(read_attached_text(path_, "text"), std::nullopt);
    for (const auto read : {read_attachment, read_required_text})
        try {
            read(path_, "vocabulary");
            ADD_FAILURE();
        } catch (const BadData& error) {
            EXPECT_NE(std::string(error.what()).find(" is truncated"), std::string::npos)
                << error.what();
        }
}

TEST_F(AttachmentTest, ARequiredTextIsMissed) {
    write();
    EXPECT_EQ(read_attached_text(path_, "text"), std::nullopt);
    EXPECT_THROW(read_required_text(path_, "text"), BadData);
}

TEST_F(AttachmentTest, OnlyBytesInOneDimensionAreAccepted) {
    write(H5T_STD_I32LE);
    EXPECT_THROW(read_attachment(path_, "vocabulary"), BadData);
    write(H5T_STD_U8LE, {content.size(), 1});
    EXPECT_THROW(read_attachment(path_, "vocabulary"), BadData);
}

TEST_F(AttachmentTest, OneThatNobodyAskedForIsSurplus) {
    write();
    CorpusSchema schema = schema_with(0);
    schema.attachments.clear();
    EXPECT_NE(message_of(schema).find("dataset 'vocabulary' is surplus"), std::string::npos);
}

}  // namespace
}  // namespace hetseq
