// metrics.jsonl, cut back to a checkpoint: what stays, stays when it is cut there again.
#include <iterator>

#include "hetseq/train/record/metrics_file.hpp"

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Folder folder;
    const auto content = [&] {
        std::ifstream file{folder / "metrics.jsonl", std::ios::binary};
        return std::string{std::istreambuf_iterator<char>(file), {}};
    };
    const auto cut = [&] {
        fuzz::parsed([&] {
            cut_metrics(folder / "metrics.jsonl", 100);
            return 0;
        });
        return content();
    };
    folder.write("metrics.jsonl", fuzz::text_of(data, size));
    const std::string kept = cut();
    FUZZ_CHECK(kept.size() <= size && (kept.empty() || kept.back() == '\n'));
    FUZZ_CHECK(cut() == kept);
    return 0;
}
