#pragma once

#include <string>

#include <hdf5.h>

#include "hetseq/util/unique_handle.hpp"

namespace hetseq {

/// Turns off HDF5's own printing and its clean-up at exit, which would close files collectively
/// while the program ends. It must be called before any other use of HDF5.
void initialize_hdf5();

/// The innermost message of HDF5's error stack. It tells the cause; the others only say that
/// something failed.
std::string hdf5_error_message();

/// True if something of HDF5 could not be closed, such as a file that the disk has no room for. The
/// end of MPI would then crash: it closes what HDF5 has left open.
bool hdf5_failed_to_close() noexcept;

namespace detail {

void note_failed_close() noexcept;

[[noreturn]] void throw_hdf5_error(const char* call, const char* file, int line);

template <class Result>
Result checked_hdf5(Result result, const char* call, const char* file, int line) {
    if (result < 0)
        throw_hdf5_error(call, file, line);
    return result;
}

template <herr_t (*Close)(hid_t)>
struct Hdf5Traits {
    using type = hid_t;
    static hid_t null() noexcept { return H5I_INVALID_HID; }
    static void close(hid_t& handle) noexcept {
        if (Close(handle) < 0)
            note_failed_close();
    }
};

}  // namespace detail

using Hdf5File = UniqueHandle<detail::Hdf5Traits<H5Fclose>>;
using Hdf5Group = UniqueHandle<detail::Hdf5Traits<H5Gclose>>;
using Hdf5Dataset = UniqueHandle<detail::Hdf5Traits<H5Dclose>>;
using Hdf5Attribute = UniqueHandle<detail::Hdf5Traits<H5Aclose>>;
using Hdf5Space = UniqueHandle<detail::Hdf5Traits<H5Sclose>>;
using Hdf5Type = UniqueHandle<detail::Hdf5Traits<H5Tclose>>;
using Hdf5Properties = UniqueHandle<detail::Hdf5Traits<H5Pclose>>;

/// Opens a file to read, by this process alone and without a lock; null if it is no HDF5 file that
/// can be read.
Hdf5File try_open_hdf5(const std::string& path);
/// The same. Throws BadData that says whether it is truncated, or no HDF5 file at all.
Hdf5File open_hdf5(const std::string& path);

}  // namespace hetseq

/// Makes an HDF5 call; throws IoError with HDF5's own reason when it fails.
#define HETSEQ_HDF5_TRY(call) ::hetseq::detail::checked_hdf5((call), #call, __FILE__, __LINE__)
