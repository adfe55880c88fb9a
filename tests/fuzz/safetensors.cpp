// A file of tensors: what is read and written again reads the same. An input that begins with 'r'
// is a file but for that; of any other the first line is the header, whose length is set before it.
#include "hetseq/util/files/safetensors.hpp"

#include <cstring>

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

using namespace hetseq;

namespace {

std::string file_of(std::string_view input) {
    if (input.substr(0, 1) == "r")
        return std::string(input.substr(1));
    const std::string_view header = input.substr(0, input.find('\n'));
    const std::uint64_t length = header.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    file += header;
    return file += input.substr(std::min(header.size() + 1, input.size()));
}

struct Tensors {
    std::vector<SafetensorEntry> entries;
    std::map<std::string, std::string> metadata;
    std::map<std::string, std::string> contents;  // by name
};

Tensors read(const std::filesystem::path& path) {
    SafetensorsReader reader{path};
    Tensors tensors{reader.entries(), reader.metadata(), {}};
    for (const SafetensorEntry& entry : reader.entries()) {
        std::string content(entry.bytes(), '\0');
        reader.read(entry, content.data());
        tensors.contents[entry.name] = std::move(content);
    }
    return tensors;
}

void check_written(const Tensors& tensors, const std::filesystem::path& path) {
    std::vector<SafetensorData> data;
    for (const SafetensorEntry& entry : tensors.entries)
        data.push_back(
            {entry.name, entry.type, entry.shape, tensors.contents.at(entry.name).data()});
    write_safetensors(path, data, tensors.metadata);
    const Tensors again = read(path);
    FUZZ_CHECK(again.contents == tensors.contents && again.metadata == tensors.metadata);
    SafetensorsReader reader{path};
    for (const SafetensorEntry& entry : tensors.entries) {
        const SafetensorEntry* found = reader.find(entry.name);
        FUZZ_CHECK(found != nullptr && found->type == entry.type && found->shape == entry.shape);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Folder folder;
    const fuzz::MemoryFile file{file_of(fuzz::text_of(data, size))};
    if (const auto tensors = fuzz::parsed([&] { return read(file.path()); }))
        check_written(*tensors, folder / "written.safetensors");
    return 0;
}
