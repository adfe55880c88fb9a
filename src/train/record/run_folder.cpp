#include "hetseq/train/record/run_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/files/temporary_name.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/folder_lease.hpp"
#include "hetseq/train/record/folder_parts.hpp"
#include "hetseq/train/record/metrics_file.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

void make_writable(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (!error && ::access(path.c_str(), W_OK) != 0)
        error = {errno, std::system_category()};
    if (error)
        throw IoError("cannot write the run folder " + path.string(),
                      error.message(),
                      "choose another --save-dir");
}

void remove_file(const fs::path& file) {
    std::error_code error;
    fs::remove(file, error);
    if (error)
        throw IoError("cannot remove " + file.string() + " of an earlier run",
                      error.message(),
                      "choose another --save-dir");
}

// TensorBoard takes files by this part of their names.
bool is_event_file(const fs::path& file) {
    return file.filename().string().find("tfevents") != std::string::npos;
}

// What models of text keep beside them, besides vocabularies of other names.
constexpr std::array text_file_names{"vocab.txt", "tokenizer_config.json", "labels.txt"};

bool is_vocabulary(const fs::path& file) {
    return file.extension() == ".vocabulary" ||
           std::ranges::any_of(text_file_names,
                               [&](const char* name) { return file.filename() == name; });
}

template <class Chosen>
void remove_files(const fs::path& folder, const Chosen& is_chosen) {
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error))
        if (is_chosen(entry->path()))
            remove_file(entry->path());
}

// Without making anything: the folder, or the nearest above it that exists.
void check_writable(fs::path path) {
    std::error_code ignored;
    path = fs::absolute(path, ignored);
    while (path.has_relative_path() && !fs::exists(path, ignored))
        path = path.parent_path();
    if (!std::filesystem::is_directory(path, ignored))
        throw BadConfig(
            path.string() + " is a file, not a folder", "--save-dir", "choose another --save-dir");
    if (::access(path.c_str(), W_OK | X_OK) != 0)
        throw IoError("cannot write into " + path.string(),
                      std::strerror(errno),
                      "choose another --save-dir");
}

std::shared_ptr<FolderLease> lease_of(const fs::path& path) {
    LeaseSurroundings surroundings;
    surroundings.is_asked_to_stop = [] { return signal_inbox::stop_signal() != 0; };
    return std::make_shared<FolderLease>(path, std::move(surroundings));
}

}  // namespace

RunFolder::RunFolder(const HostComm& world,
                     const fs::path& path,
                     ExistingRun existing,
                     FolderUse use)
    : path_{path}, existing_{existing} {
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        check_writable(path);
        require_usable();
        if (use == FolderUse::write) {
            lease_ = lease_of(path);
            start_ = lease_->token();
            require_first_start();
        }
        if (use == FolderUse::write && is_there(path)) {
            lease_->acquire();
            require_usable();  // whoever had it may have left a run behind
            remove_old_stop_file();
        }
        holds_run_ = is_there(config()) || !checkpoints().list().empty() || !results().empty();
    });
    holds_run_ = world.broadcast(std::int64_t{holds_run_}, 0) != 0;
    start_ = world.broadcast(start_, 0);
}

RunFolder::~RunFolder() = default;
RunFolder::RunFolder(RunFolder&&) noexcept = default;
RunFolder& RunFolder::operator=(RunFolder&&) noexcept = default;

// Of a start that failed while a rank was left out of it: nobody of that start could remove it.
void RunFolder::remove_old_stop_file() const {
    std::error_code ignored;
    if (read_file_text(stop_file()).value_or("") == passed_on)
        fs::remove(stop_file(), ignored);
}

// A job script starts the same command again after a failure, and through the queue.
void RunFolder::require_first_start() const {
    const std::int64_t before = earlier_starts_of_job();
    if (existing_ == ExistingRun::overwrite && before > 0)
        throw BadConfig("--overwrite in restart " + std::to_string(before) + " of this job",
                        "it would remove what the job has saved in " + path_.string(),
                        "leave it out of the job's command, and remove the folder before a job "
                        "that is to begin anew");
}

// What only a run leaves, beside its configuration and checkpoints.
std::vector<fs::path> RunFolder::results() const {
    std::vector<fs::path> found;
    for (const fs::path& file : {metrics(), summary(), allocations(), model(), best_model()})
        if (is_there(file))
            found.push_back(file);
    return found;
}

// A run that died before its first checkpoint has lost nothing that a start from the first update
// does not compute again. It can be told from one whose checkpoints somebody removed by a mark.
void RunFolder::require_usable() const {
    if (existing_ == ExistingRun::overwrite)
        return;
    const std::vector<fs::path> found = results();
    const bool saved = !checkpoints().list().empty();
    const bool begun = is_there(config());
    if (existing_ == ExistingRun::refuse && (begun || saved || !found.empty()))
        throw BadConfig(path_.string() + " holds a run already",
                        (begun   ? "config.cfg is"
                         : saved ? "checkpoints are"
                                 : found.front().filename().string() + " is") +
                            std::string(" there"),
                        "give another --save-dir, --resume auto to continue it, or --overwrite "
                        "to start anew");
    const bool saved_nothing_yet = checkpoints().has_saved_nothing() && !is_there(summary());
    if (!saved && !found.empty() && !saved_nothing_yet)
        throw BadConfig(path_.string() + " holds a run that cannot be continued",
                        found.front().filename().string() + " is there, but no checkpoint",
                        "put its checkpoints back, give another --save-dir, or --overwrite to "
                        "start anew");
}

CheckpointFolder RunFolder::checkpoints() const {
    if (lease_ == nullptr)
        return CheckpointFolder(path_ / "checkpoints", start_);
    return CheckpointFolder(path_ / "checkpoints", start_, [lease = lease_] { lease->check(); });
}

void RunFolder::require_lease() const {
    if (lease_ != nullptr)
        lease_->check();
}

void RunFolder::require_known_lease() const {
    if (lease_ != nullptr)
        lease_->check_known();
}

bool RunFolder::has_lost_lease() const {
    return lease_ != nullptr && lease_->is_lost();
}

bool RunFolder::may_write() const {
    try {
        require_lease();
        return true;
    } catch (const BadConfig&) {
        return false;
    }
}

void RunFolder::remove_earlier_run() const {
    require_lease();
    for (const fs::path& file :
         {summary(), metrics(), history(), allocations(), model(), best_model(), model_config()})
        remove_file(file);
    remove_files(tensorboard(), is_event_file);
    remove_files(path_, is_vocabulary);
    remove_file(config());  // last: a start that was killed here begins again
}

// Of processes that died: this one has the lease.
void RunFolder::remove_temporary_files() const {
    require_lease();
    remove_files(path_, [&](const fs::path& file) {
        const std::string name = file.filename().string();
        const std::vector<fs::path> own{config(),
                                        metrics(),
                                        summary(),
                                        history(),
                                        allocations(),
                                        model(),
                                        best_model(),
                                        model_config(),
                                        path_ / FolderLease::file_name};
        return std::any_of(own.begin(),
                           own.end(),
                           [&](const fs::path& of) {
                               return is_temporary_name(name, of.filename().string());
                           }) ||
               is_temporary_name(name, name.substr(0, name.find(".vocabulary")) + ".vocabulary") ||
               std::ranges::any_of(text_file_names,
                                   [&](const char* of) { return is_temporary_name(name, of); });
    });
}

void RunFolder::keep(const std::string& config_text,
                     const std::vector<CompanionFile>& model_files) {
    parts_ = std::make_unique<FolderParts>();
    parts_->keep(config(), config_text);
    for (const CompanionFile& file : model_files)
        parts_->keep(path_ / file.name, file.content);
}

void RunFolder::begin(const HostComm& world,
                      const std::string& config_text,
                      const std::vector<CompanionFile>& model_files) {
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        make_writable(path_);
        const bool is_new = !lease_->is_held();
        lease_->acquire();
        if (is_new && existing_ != ExistingRun::overwrite &&
            (is_there(config()) || !checkpoints().list().empty()))
            throw BadConfig(path_.string() + " holds a run already",
                            "another job began it in the meantime",
                            "start again to continue it, or give another --save-dir");
        if (existing_ == ExistingRun::overwrite)
            checkpoints().remove_all();
        if (existing_ == ExistingRun::overwrite || holds_run_)
            remove_earlier_run();
        checkpoints().remove_leftovers();
        remove_temporary_files();
        write_atomically(config(), config_text);
        for (const CompanionFile& file : model_files)
            write_atomically(path_ / file.name, file.content);
        checkpoints().make();
        keep(config_text, model_files);
    });
}

void RunFolder::resume(const HostComm& world,
                       std::int64_t update,
                       const std::string& config_text,
                       const std::vector<CompanionFile>& model_files) {
    agree_on(world, [&] {
        if (world.rank() != 0)
            return;
        for (const fs::path& moved : checkpoints().set_aside(update))
            log::warn("a checkpoint beyond update " + std::to_string(update) +
                      ", from which the run goes on, is kept as " + moved.string());
        checkpoints().remove_leftovers();
        remove_temporary_files();
        remove_file(summary());  // of an earlier end
        cut_metrics(metrics(), update);
        write_atomically(config(), config_text);
        for (const CompanionFile& file : model_files)
            if (!is_there(path_ / file.name))
                write_atomically(path_ / file.name, file.content);
        keep(config_text, model_files);
    });
}

void RunFolder::look_after_parts() const {
    if (parts_ == nullptr || !may_write())
        return;
    for (const fs::path& file : {best_model(), allocations()})
        if (is_there(file))
            parts_->keep(file);
    std::vector<std::string> gone;
    for (const fs::path& path : parts_->look())
        gone.push_back(path.filename().string());
    if (!gone.empty())
        log::warn("somebody removed " + join(gone, ", ") + " from " + path_.string() +
                  " while the run goes on; what the run still knows is written anew");
}

void RunFolder::report_removed_parts() const {
    if (parts_ != nullptr && !parts_->report().empty())
        log::warn(parts_->report());
}

}  // namespace hetseq
