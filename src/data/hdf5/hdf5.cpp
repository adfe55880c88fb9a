#include "hetseq/data/hdf5/hdf5.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

std::atomic<bool> failed_to_close{false};

herr_t keep_first(unsigned depth, const H5E_error2_t* error, void* message) {
    if (depth == 0 && error->desc != nullptr)
        *static_cast<std::string*>(message) = error->desc;
    return 0;
}

}  // namespace

void initialize_hdf5() {
    static std::once_flag once;
    std::call_once(once, [] {
        H5dont_atexit();
        H5open();
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    });
}

std::string hdf5_error_message() {
    std::string message;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &message);
    return message.empty() ? "HDF5 gave no reason" : message;
}

bool hdf5_failed_to_close() noexcept {
    return failed_to_close;
}

namespace detail {

void note_failed_close() noexcept {
    failed_to_close = true;
}

void throw_hdf5_error(const char* call, const char* file, int line) {
    throw IoError("an HDF5 call failed: " + hdf5_error_message(),
                  std::string(call) + " at " + file + ":" + std::to_string(line));
}

}  // namespace detail

namespace {

struct OpenedHdf5 {
    Hdf5File file;
    std::string problem;  // why there is none
};

// The message is taken before any other call of HDF5, which may clear it.
OpenedHdf5 open_without_lock(const std::string& path) {
    const Hdf5Properties access{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_ACCESS))};
    HETSEQ_HDF5_TRY(H5Pset_file_locking(access.get(), 0, 1));
    OpenedHdf5 opened{Hdf5File{H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())}, ""};
    if (!opened.file)
        opened.problem = hdf5_error_message();
    return opened;
}

}  // namespace

Hdf5File try_open_hdf5(const std::string& path) {
    return open_without_lock(path).file;
}

Hdf5File open_hdf5(const std::string& path) {
    OpenedHdf5 opened = open_without_lock(path);
    if (opened.file)
        return std::move(opened.file);
    const std::string& reason = opened.problem;
    if (reason.find("truncated") != std::string::npos)
        throw BadData(path + " is truncated", reason, "copy or prepare it again");
    if (reason.find("signature not found") != std::string::npos)
        throw BadData(path + " is not an HDF5 file", reason, "name prepared files only");
    throw BadData(path + " cannot be opened as HDF5", reason, "copy or prepare it again");
}

}  // namespace hetseq
