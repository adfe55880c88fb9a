#include "hetseq/util/exit_code.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"

namespace hetseq {

int exit_code_of(const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    return static_cast<int>(known != nullptr ? known->code() : ExitCode::internal);
}

void print_error(const std::exception& error) {
    log::here(log::Level::error, message_of(error));
}

}  // namespace hetseq
