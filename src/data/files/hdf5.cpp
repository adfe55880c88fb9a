#include "hetseq/data/files/hdf5.hpp"

#include <mutex>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

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

namespace detail {

void throw_hdf5_error(const char* call, const char* file, int line) {
    throw IoError("an HDF5 call failed: " + hdf5_error_message(),
                  std::string(call) + " at " + file + ":" + std::to_string(line));
}

}  // namespace detail

}  // namespace hetseq
