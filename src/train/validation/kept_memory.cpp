#include "hetseq/train/validation/kept_memory.hpp"

#include <string>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

void check_room_for_kept(std::int64_t bytes, std::int64_t available_mb) {
    constexpr double mib = 1 << 20;
    const double needed = static_cast<double>(bytes) / mib;
    const double most = static_cast<double>(available_mb) / 4;
    if (needed <= most)
        return;
    throw BadConfig("the predictions of a validation are " + format_number(needed) +
                        " MiB, more than rank 0 may gather",
                    format_number(most) +
                        " MiB are a quarter of the memory that its host has "
                        "available",
                    "let predict give less of a sample, such as a class in place of all "
                    "probabilities, validate on fewer samples, or run rank 0 on a host with more "
                    "memory");
}

}  // namespace hetseq
