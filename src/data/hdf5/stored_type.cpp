#include "hetseq/data/hdf5/stored_type.hpp"

#include <string>

namespace hetseq {

std::string StoredType::name() const {
    if (kind == StoredKind::boolean)
        return "bool";
    const std::string prefix = kind == StoredKind::real ? "float" : is_signed ? "int" : "uint";
    return prefix + std::to_string(8 * bytes);
}

}  // namespace hetseq
