#pragma once

#include "hetseq/util/unique_handle.hpp"

#include <zlib.h>

namespace hetseq {

struct GzipTraits {
    using type = gzFile;
    static type null() noexcept { return nullptr; }
    static void close(type& file) noexcept { gzclose(file); }
};

/// A file that zlib reads, plain files as they are.
using GzipFile = UniqueHandle<GzipTraits>;

}  // namespace hetseq
