#include <cstdio>

#include <ATen/Version.h>

#include "hetseq/util/json.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/nccl/nccl_info.hpp"
#include "hetseq/data/hdf5/hdf5_info.hpp"
#include "hetseq/app/commands.hpp"

#include "command_options.hpp"
#include "hetseq/version.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

std::string cuda_description() {
    if (cuda_compiled_version() == "not built")
        return "not built";
    return "compiled " + cuda_compiled_version() + " for " + version::cuda_architectures +
           ", runtime " + cuda_runtime_version() + ", driver " + cuda_driver_version();
}

std::string nccl_description() {
    if (nccl_compiled_version() == "not built")
        return "not built";
    return "compiled " + nccl_compiled_version() + ", loaded " + nccl_loaded_version();
}

Rows build_rows() {
    return {{"hetseq",
             std::string(version::number) + " (" + version::revision + "), " + version::build_type},
            {"compiler", version::compiler},
            {"MPI", first_line(MpiEnvironment::library_version()) + ", compiled " + version::mpi},
            {"HDF5", hdf5_description() + ", compiled " + version::hdf5},
            {"LibTorch", std::string(version::libtorch) + ", " + at::get_cpu_capability()},
            {"CUDA", cuda_description()},
            {"NCCL", nccl_description()}};
}

}  // namespace

int info_command(const CommandContext& context) {
    const Rows rows = build_rows();
    if (!context.words.read(info_options()).json) {
        std::fputs(format_table(rows).c_str(), stdout);
        return 0;
    }
    nlohmann::ordered_json json;
    for (const auto& row : rows)
        json[row[0]] = row[1];
    std::puts(json_text(json, 2).c_str());
    return 0;
}

}  // namespace hetseq
