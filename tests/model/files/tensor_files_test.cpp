#include "hetseq/model/files/tensor_files.hpp"

#include <array>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/files/model_file.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

using test::TemporaryFolder;

/// A file of tensors of two numbers each: the first is that of its name in the list.
void write_tensors(const std::filesystem::path& path, const std::vector<std::string>& names) {
    std::vector<std::array<float, 2>> values;
    for (std::size_t i = 0; i < names.size(); ++i)
        values.push_back({static_cast<float>(i), 0.5f});
    std::vector<SafetensorData> tensors;
    for (std::size_t i = 0; i < names.size(); ++i)
        tensors.push_back({names[i], SafetensorType::F32, {2}, values[i].data()});
    write_safetensors(path, tensors);
}

constexpr const char* index_name = "model.safetensors.index.json";

float first_value(TensorFiles& files, const std::string& name) {
    std::array<float, 2> values{};
    files.read(*files.find(name), values.data());
    return values[0];
}

TEST(TensorFilesTest, AnIndexJoinsItsFiles) {
    const TemporaryFolder folder;
    write_tensors(folder / "model-00001-of-00002.safetensors", {"a", "b"});
    write_tensors(folder / "model-00002-of-00002.safetensors", {"unlisted", "c"});
    folder.write(index_name,
                 R"({"metadata": {"total_size": 24}, "weight_map": {
                       "a": "model-00001-of-00002.safetensors",
                       "c": "model-00002-of-00002.safetensors",
                       "b": "model-00001-of-00002.safetensors"}})");

    TensorFiles files{folder / index_name};

    EXPECT_EQ(files.size(), 3u);
    std::vector<std::string> names;
    for (const SafetensorEntry* entry : files.entries())
        names.push_back(entry->name);
    EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(first_value(files, "a"), 0);
    EXPECT_EQ(first_value(files, "b"), 1);
    EXPECT_EQ(first_value(files, "c"), 1);
    EXPECT_EQ(files.find("unlisted"), nullptr);
}

std::string error_of_opening(const std::filesystem::path& path) {
    try {
        const TensorFiles files{path};
    } catch (const BadData& error) {
        return error.what();
    }
    return "opened";
}

TEST(TensorFilesTest, ABadIndexSaysWhatIsWrong) {
    const std::pair<const char*, const char*> cases[] = {
        {"[1]", "no object 'weight_map'"},
        {R"({"weight_map": ["a"]})", "no object 'weight_map'"},
        {R"({"weight_map": {"a": "../other.safetensors"}})", "tensor 'a' is in"},
        {R"({"weight_map": {"a": "other.bin"}})", "tensor 'a' is in \"other.bin\""},
        {R"({"weight_map": {"a": 1}})", "tensor 'a' is in 1"},
        {R"({"weight_map": {"a": "one.safetensors", "z": "one.safetensors"}})",
         "one.safetensors lacks the tensor 'z'"}};
    const TemporaryFolder folder;
    write_tensors(folder / "one.safetensors", {"a"});
    for (const auto& [index, problem] : cases) {
        folder.write(index_name, index);

        const std::string message = error_of_opening(folder / index_name);

        EXPECT_NE(message.find(problem), std::string::npos) << message;
    }
}

TEST(TensorFilesTest, AFileThatTheIndexNamesMustBeThere) {
    const TemporaryFolder folder;
    folder.write(index_name, R"({"weight_map": {"a": "gone.safetensors"}})");

    EXPECT_THROW(TensorFiles{folder / index_name}, MissingInput);
    EXPECT_THROW(TensorFiles{folder / "other.safetensors.index.json"}, MissingInput);
}

TEST(TensorFilesTest, OtherFormatsAreRefusedWithTheWayToConvertThem) {
    const TemporaryFolder folder;
    for (const char* name : {"pytorch_model.bin", "model.pt", "x.pth", "x.ckpt"}) {
        const std::string message = error_of_opening(folder / name);

        EXPECT_NE(message.find("is a pickle"), std::string::npos) << message;
        EXPECT_NE(message.find("torch.load('" + (folder / name).string()), std::string::npos)
            << message;
    }
    for (const char* name : {"pytorch_model.bin.index.json", "tf_model.h5"})
        EXPECT_NE(error_of_opening(folder / name).find("save_pretrained"), std::string::npos);
}

TEST(TensorFilesTest, AFoldersWeightsAreSafetensorsWhereItHasThem) {
    const TemporaryFolder folder;
    EXPECT_EQ(model_file(folder.path().string()), folder / "model.safetensors");

    folder.write("pytorch_model.bin", "");
    EXPECT_EQ(model_file(folder.path().string()), folder / "pytorch_model.bin");

    folder.write(index_name, "{}");
    EXPECT_EQ(model_file(folder.path().string()), folder / index_name);

    folder.write("model.safetensors", "");
    EXPECT_EQ(model_file(folder.path().string()), folder / "model.safetensors");

    EXPECT_EQ(model_file((folder / "pytorch_model.bin").string()), folder / "pytorch_model.bin");
    EXPECT_EQ(model_config_file((folder / index_name).string()), folder / "config.json");
}

}  // namespace
}  // namespace hetseq
