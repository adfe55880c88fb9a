#include "hetseq/data/hdf5/hdf5_info.hpp"

#include <hdf5.h>

namespace hetseq {

std::string hdf5_description() {
    unsigned major = 0, minor = 0, release = 0;
    hbool_t thread_safe = false;
    if (H5get_libversion(&major, &minor, &release) < 0 || H5is_library_threadsafe(&thread_safe) < 0)
        return "not usable";
#ifdef H5_HAVE_PARALLEL
    const std::string parallel = "parallel";
#else
    const std::string parallel = "serial";
#endif
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release) +
           ", " + parallel + (thread_safe ? ", thread-safe" : ", not thread-safe");
}

}  // namespace hetseq
