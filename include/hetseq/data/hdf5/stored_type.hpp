#pragma once

#include <string>

namespace hetseq {

enum class StoredKind { integer, real, boolean };

/// A type as a file stores it.
struct StoredType {
    int bytes = 0;
    bool is_signed = true;  // of integers, and of those that stand for a boolean
    StoredKind kind = StoredKind::integer;
    std::string name() const;  // "int32", "uint8", "float16", "bool"
};

}  // namespace hetseq
