#pragma once

#include <mutex>
#include <string>

namespace hetseq {

/// The last line that a terminal shows on standard error while the program works. The logger erases
/// it before a message; the next `show` draws it again. There is one per process, like standard
/// error. Thread-safe.
namespace status_line {

/// Draws `text`, without line ends, in place of what was drawn before.
void show(const std::string& text);
void erase();
/// Erases the line and keeps it away until the lock is released.
std::unique_lock<std::mutex> hide();

}  // namespace status_line

}  // namespace hetseq
