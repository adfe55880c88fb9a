#include "hetseq/data/files/hdf5_output.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/temporary_name.hpp"
#include "hetseq/util/process/activity.hpp"

#include <fcntl.h>

namespace hetseq {

namespace {

Hdf5File create_file(const std::filesystem::path& path, ShardFormat format) {
    initialize_hdf5();
    const Hdf5Properties access{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_ACCESS))};
    HETSEQ_HDF5_TRY(H5Pset_file_locking(access.get(), 0, 1));
    if (format == ShardFormat::large_attributes)
        HETSEQ_HDF5_TRY(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18));
    const Hdf5Properties create{HETSEQ_HDF5_TRY(H5Pcreate(H5P_FILE_CREATE))};
    HETSEQ_HDF5_TRY(H5Pset_obj_track_times(create.get(), false));  // the same bytes tomorrow
    Hdf5File file{H5Fcreate(path.c_str(), H5F_ACC_EXCL, create.get(), access.get())};
    if (!file)
        throw IoError("cannot write " + path.string(), hdf5_error_message(), "check the folder");
    return file;
}

void sync_file(const std::filesystem::path& path) {
    const UniqueHandle<detail::FileDescriptorTraits> file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    if (!file || ::fsync(file.get()) != 0)
        throw IoError("cannot write " + path.string(), std::strerror(errno), "check the disk");
}

}  // namespace

Hdf5Output::Hdf5Output(std::filesystem::path path, ShardFormat format)
    : path_{std::move(path)},
      temporary_{temporary_beside(path_)},
      file_{create_file(temporary_, format)} {}

Hdf5Output::~Hdf5Output() {
    file_.reset();
    if (!temporary_.empty())
        ::unlink(temporary_.c_str());
}

void Hdf5Output::attach_text(const std::string& name, const std::string& text) {
    const Hdf5Type type{HETSEQ_HDF5_TRY(H5Tcopy(H5T_C_S1))};
    HETSEQ_HDF5_TRY(H5Tset_size(type.get(), text.size()));
    HETSEQ_HDF5_TRY(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
    HETSEQ_HDF5_TRY(H5Tset_cset(type.get(), H5T_CSET_UTF8));
    const Hdf5Space space{HETSEQ_HDF5_TRY(H5Screate(H5S_SCALAR))};
    const Hdf5Attribute attribute{HETSEQ_HDF5_TRY(
        H5Acreate2(file_.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT))};
    HETSEQ_HDF5_TRY(H5Awrite(attribute.get(), type.get(), text.data()));
}

void Hdf5Output::flush() {
    HETSEQ_HDF5_TRY(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL));
}

std::int64_t Hdf5Output::finish() {
    flush();
    file_.reset();
    sync_file(temporary_);
    activity::progress();  // gigabytes may take minutes
    return static_cast<std::int64_t>(std::filesystem::file_size(temporary_));
}

void Hdf5Output::commit() {
    std::error_code error;
    std::filesystem::rename(temporary_, path_, error);
    if (error)
        throw IoError("cannot write " + path_.string(), error.message(), "check the folder");
    temporary_.clear();
    sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

}  // namespace hetseq
