#include "hetseq/train/run_folder.hpp"

#include <cerrno>
#include <system_error>

#include <unistd.h>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

namespace {

void make_writable(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (!error && ::access(path.c_str(), W_OK) != 0)
        error = {errno, std::system_category()};
    if (error)
        throw IoError("cannot write the run folder " + path.string(),
                      error.message(),
                      "choose another --save-dir");
}

}  // namespace

RunFolder::RunFolder(const HostComm& world, const std::filesystem::path& path, ExistingRun existing)
    : path_{path} {
    agree_on(world, [&] {
        if (world.rank() == 0 && existing == ExistingRun::refuse &&
            std::filesystem::exists(config()))
            throw BadConfig(path.string() + " holds a run already",
                            "config.cfg is there",
                            "give another --save-dir, or --overwrite to start anew");
    });
}

void RunFolder::begin(const HostComm& world, const std::string& config_text) const {
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        make_writable(path_);
        for (const auto& file : {config(), metrics(), summary(), model(), best_model()})
            std::filesystem::remove(file);
        write_atomically(config(), config_text);
    });
}

}  // namespace hetseq
