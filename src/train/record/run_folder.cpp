#include "hetseq/train/record/run_folder.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include <unistd.h>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/metrics_file.hpp"

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

void remove_file(const std::filesystem::path& file) {
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error)
        throw IoError("cannot remove " + file.string() + " of an earlier run",
                      error.message(),
                      "choose another --save-dir");
}

// TensorBoard takes files by this part of their names.
bool is_event_file(const std::filesystem::path& file) {
    return file.filename().string().find("tfevents") != std::string::npos;
}

bool is_vocabulary(const std::filesystem::path& file) {
    return file.extension() == ".vocabulary";
}

template <class Chosen>
void remove_files(const std::filesystem::path& folder, const Chosen& is_chosen) {
    std::error_code error;
    std::filesystem::directory_iterator entry(folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
        if (is_chosen(entry->path()))
            remove_file(entry->path());
}

// Without making anything: the folder, or the nearest above it that exists.
void check_writable(std::filesystem::path path) {
    std::error_code ignored;
    path = std::filesystem::absolute(path, ignored);
    while (path.has_relative_path() && !std::filesystem::exists(path, ignored))
        path = path.parent_path();
    if (::access(path.c_str(), W_OK | X_OK) != 0)
        throw IoError("cannot write into " + path.string(),
                      std::strerror(errno),
                      "choose another --save-dir");
}

}  // namespace

RunFolder::RunFolder(const HostComm& world, const std::filesystem::path& path, ExistingRun existing)
    : path_{path} {
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        std::error_code ignored;
        holds_run_ = std::filesystem::exists(config(), ignored);
        if (existing == ExistingRun::refuse && holds_run_)
            throw BadConfig(path.string() + " holds a run already",
                            "config.cfg is there",
                            "give another --save-dir, --resume auto to continue it, or --overwrite "
                            "to start anew");
        check_writable(path);
    });
    holds_run_ = world.broadcast(std::int64_t{holds_run_}, 0) != 0;
}

void RunFolder::begin(const HostComm& world,
                      const std::string& config_text,
                      const std::vector<CompanionFile>& model_files) const {
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        make_writable(path_);
        for (const auto& file :
             {config(), metrics(), summary(), allocations(), model(), best_model(), model_config()})
            remove_file(file);
        checkpoints().clean(-1);
        remove_files(tensorboard(), is_event_file);
        remove_files(path_, is_vocabulary);
        write_atomically(config(), config_text);
        for (const CompanionFile& file : model_files)
            write_atomically(path_ / file.name, file.content);
    });
}

void RunFolder::resume(const HostComm& world,
                       std::int64_t update,
                       const std::string& config_text) const {
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        checkpoints().clean(update);
        cut_metrics(metrics(), update);
        write_atomically(config(), config_text);
    });
}

}  // namespace hetseq
