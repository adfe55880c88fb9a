#include "hetseq/util/process/exit_code.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/standard_streams.hpp"

namespace hetseq {

int exit_code_of(const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    return static_cast<int>(known != nullptr ? known->code() : ExitCode::internal);
}

void print_error(const std::exception& error) {
    log::here(log::Level::error, message_of(error));
}

int run_to_exit_code(const std::function<int()>& work) {
    try {
        const int code = work();
        check_standard_output();
        return code;
    } catch (const ReaderLeft&) {
        return reader_left_code;
    } catch (const std::exception& error) {
        print_error(error);
        return exit_code_of(error);
    }
}

}  // namespace hetseq
