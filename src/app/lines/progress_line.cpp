#include "progress_line.hpp"

#include <unistd.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/status_line.hpp"
#include "hetseq/util/process/terminal.hpp"

namespace hetseq {

namespace {

bool is_on_terminal() {
    return ::isatty(STDOUT_FILENO) == 1 || ::isatty(STDIN_FILENO) == 1;
}

}  // namespace

ProgressLine::ProgressLine(Streams streams)
    : columns_{streams == Streams::used && is_on_terminal() ? 0 : columns_of_terminal()},
      begin_s_{monotonic_seconds()} {}

ProgressLine::~ProgressLine() {
    if (columns_ > 0)
        status_line::erase();
}

void ProgressLine::show(const std::function<std::string(double)>& line) {
    const double now_s = monotonic_seconds();
    if (columns_ == 0 || now_s - drawn_s_ < 0.2)
        return;
    drawn_s_ = now_s;
    status_line::show(line(now_s - begin_s_).substr(0, static_cast<std::size_t>(columns_ - 1)));
}

double ProgressLine::seconds() const {
    return monotonic_seconds() - begin_s_;
}

}  // namespace hetseq
