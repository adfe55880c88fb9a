// Shards that HDF5 finds valid, of every kind: what is read of them is what was written.
#include "fuzz/folder.hpp"
#include "fuzz/shard_reading.hpp"
#include "fuzz/written_shard.hpp"

using namespace hetseq;

// A file that HDF5 cannot open costs it some memory.
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libhdf5";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Folder folder;  // HDF5 opens only what has a real path
    initialize_hdf5();
    FuzzedDataProvider input{data, size};
    const fuzz::WrittenShard written = fuzz::write_shard(input);
    folder.write("shard.h5",
                 {reinterpret_cast<const char*>(written.bytes.data()), written.bytes.size()});
    const auto shard = fuzz::parsed([&] { return fuzz::read_shard(folder / "shard.h5"); });
    if (!shard)
        return 0;
    for (std::size_t i = 0; i < shard->values.size(); ++i)
        for (std::size_t e = 0; e < shard->values[i].size() && e < written.values[i].size(); ++e)
            FUZZ_CHECK(written.values[i][e].is(shard->values[i][e]));
    return 0;
}
