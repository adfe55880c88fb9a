// The input of `hetseq plan --from RUN`: summary.json, then after a line "----" config.cfg.
#include <cmath>

#include "hetseq/app/commands/plan/run_measurements.hpp"

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"

using namespace hetseq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Folder folder;
    const std::string_view text = fuzz::text_of(data, size);
    const std::string_view border = "\n----\n";
    const auto end = text.find(border);
    folder.write("summary.json", text.substr(0, end));
    folder.write("config.cfg",
                 end == std::string_view::npos ? "" : text.substr(end + border.size()));
    const auto run = fuzz::parsed([&] { return read_measured_run(folder.path().string()); });
    if (!run)
        return 0;
    FUZZ_CHECK(run->batch >= 0 && std::isfinite(run->step_ms) && run->step_ms >= 0);
    FUZZ_CHECK(std::isfinite(run->bucket_mib) && run->bucket_mib >= 0);
    for (const MeasuredRun::Rank& rank : run->ranks)
        FUZZ_CHECK(rank.micro_batch >= 0 && std::isfinite(rank.units) && rank.units >= 0);
    return 0;
}
