#include "hetseq/util/process/terminal.hpp"

#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

#include "hetseq/util/process/launcher.hpp"

#include <fcntl.h>

namespace hetseq {

namespace {

constexpr int usual_columns = 80;  // where a terminal does not tell

int columns_of(int descriptor) {
    winsize size{};
    return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                          : usual_columns;
}

}  // namespace

int columns_of_terminal() {
    if (::isatty(STDERR_FILENO) == 1)
        return columns_of(STDERR_FILENO);
    const std::string terminal = terminal_of_launcher();
    if (terminal.empty())
        return 0;
    const int descriptor = ::open(terminal.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    const int columns = columns_of(descriptor);
    if (descriptor >= 0)
        ::close(descriptor);
    return columns;
}

}  // namespace hetseq
