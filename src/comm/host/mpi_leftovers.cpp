#include "hetseq/comm/host/mpi_leftovers.hpp"

#include <cerrno>
#include <chrono>
#include <exception>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "hetseq/comm/host/host_name.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

// Linux's first namespace of processes always has this number (PROC_PID_INIT_INO).
constexpr const char* own_namespace = "/proc/self/ns/pid";
constexpr const char* first_namespace = "pid:[4026531836]";
const std::string first_process = "1";  // no rank; of a container it may be closed to all

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool is_own(const fs::path& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::getuid();
}

bool is_old(const fs::path& path, double least_age_s) {
    std::error_code error;
    const auto written = fs::last_write_time(path, error);
    const std::chrono::duration<double> age = fs::file_time_type::clock::now() - written;
    return !error && age.count() >= least_age_s;
}

// Calls `function` with each entry of a folder, as far as it can be read.
template <class Function>
void for_each_in(const fs::path& folder, Function&& function) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        function(at->path());
}

// That this user's processes map; none: one of them cannot be looked into.
std::optional<std::set<std::string>> mapped_files(const MpiPlaces& places) {
    const std::string folder = (places.segments / "").string();
    std::set<std::string> mapped;
    bool are_all_known = true;
    for_each_in(places.processes, [&](const fs::path& process) {
        const std::string number = process.filename().string();
        if (!is_number(number) || number == first_process || !is_own(process))
            return;
        errno = 0;
        std::ifstream maps(process / "maps");
        // One that has just ended maps nothing.
        are_all_known = are_all_known && (maps || (errno != EACCES && errno != EPERM));
        for (std::string line; std::getline(maps, line);)
            if (const auto at = line.find(folder); at != std::string::npos)
                mapped.insert(line.substr(at));
    });
    return are_all_known ? std::optional(mapped) : std::nullopt;
}

void remove_segments(const MpiPlaces& places, MpiLeftovers& removed) {
    std::set<fs::path> old;
    for_each_in(places.segments, [&](const fs::path& file) {
        const std::string name = file.filename().string();
        const bool is_segment = name.starts_with("vader_segment." + places.host + ".") ||
                                name.starts_with("sm_segment." + places.host + ".");
        if (is_segment && is_own(file) && is_old(file, places.least_age_s))
            old.insert(file);
    });
    if (old.empty())
        return;
    const std::optional<std::set<std::string>> mapped = mapped_files(places);
    for (const fs::path& file : old) {
        if (!mapped || mapped->contains(file.string()))
            continue;
        std::error_code error;
        const std::uintmax_t bytes = fs::file_size(file, error);
        if (!error && fs::remove(file, error)) {
            ++removed.segments;
            removed.bytes += bytes;
        }
    }
}

// The numbers that processes have here and in the containers in which they run.
std::set<std::string> living_processes(const MpiPlaces& places) {
    std::set<std::string> living;
    for_each_in(places.processes, [&](const fs::path& process) {
        if (!is_number(process.filename().string()))
            return;
        std::ifstream status(process / "status");
        for (std::string word; status >> word;)
            if (word == "NSpid:")
                while (status >> word && is_number(word))
                    living.insert(word);
    });
    return living;
}

// Families of jobs, jf.N, are told from others by being empty.
void remove_sessions(const MpiPlaces& places, MpiLeftovers& removed) {
    if (!places.are_all_processes_seen)
        return;
    const std::string by_process = "pid.", family = "jf.";
    std::optional<std::set<std::string>> living;  // asked for where one seems to be gone
    const auto is_gone = [&](const std::string& process) {
        std::error_code error;
        if (!is_number(process) || fs::exists(places.processes / process, error) || error)
            return false;
        if (!living)
            living = living_processes(places);
        return !living->contains(process);
    };
    for_each_in(places.sessions, [&](const fs::path& folder) {
        const std::string name = folder.filename().string();
        if (!is_own(folder) || !is_old(folder, places.least_age_s))
            return;
        std::error_code error;
        const bool is_dead =
            name.starts_with(by_process) && is_gone(name.substr(by_process.size()));
        const bool is_removed = is_dead ? fs::remove_all(folder, error) > 0 && !error
                                        : name.starts_with(family) && fs::remove(folder, error);
        removed.sessions += is_removed ? 1 : 0;
    });
}

}  // namespace

MpiPlaces::MpiPlaces() : host{host_name().substr(0, host_name().find('.'))} {
    std::error_code error;
    are_all_processes_seen = fs::read_symlink(own_namespace, error) == first_namespace;
    const fs::path temporary = fs::temp_directory_path(error);
    if (!error)
        sessions = temporary / ("ompi." + host + "." + std::to_string(::getuid()));
}

MpiLeftovers remove_mpi_leftovers(const MpiPlaces& places) noexcept {
    MpiLeftovers removed;
    std::error_code unknown;
    if (!fs::exists(places.processes / "self", unknown))
        return removed;  // nobody is known to be dead
    try {
        remove_segments(places, removed);
        remove_sessions(places, removed);
    } catch (const std::exception&) {
        return removed;
    }
    return removed;
}

}  // namespace hetseq
