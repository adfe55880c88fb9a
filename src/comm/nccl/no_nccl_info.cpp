#include "hetseq/comm/nccl/nccl_info.hpp"

namespace hetseq {

namespace {
constexpr const char* not_built = "not built";
}

std::string nccl_compiled_version() {
    return not_built;
}
std::string nccl_loaded_version() {
    return not_built;
}
std::string cuda_compiled_version() {
    return not_built;
}
std::string cuda_runtime_version() {
    return not_built;
}
std::string cuda_driver_version() {
    return not_built;
}

}  // namespace hetseq
