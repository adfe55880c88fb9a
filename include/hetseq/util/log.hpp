#pragma once

#include <string>

namespace hetseq {

/// Two channels: `once` is for messages of all ranks (printed only on rank 0), and `here` for
/// messages of this rank (printed with rank and host). Messages go to standard error. Results that
/// a user asked for (tables, JSON) go to standard output and do not pass through the logger.
/// Thread-safe. The one process-wide object of the program.
namespace log {

enum class Level { debug, info, warning, error };

/// Names this process. Before this call, messages look like those of a single process.
void set_identity(int rank, int size, const std::string& host);

/// What this rank is among the others, "stage 1 of 3", which its messages say from now on. After
/// `set_identity`.
void set_role(const std::string& role);
/// Empty where there is none.
std::string role();

/// Breaks messages at blanks where they are longer than a terminal's line; 0: there is none.
void set_columns(int columns);

void once(Level level, const std::string& message);
void here(Level level, const std::string& message);

/// The newest message of level error, and forgets it; also what `once` did not print on this rank.
/// Empty where there was none.
std::string take_last_error();

inline void info(const std::string& message) {
    once(Level::info, message);
}
inline void warn(const std::string& message) {
    once(Level::warning, message);
}
inline void warn_here(const std::string& message) {
    here(Level::warning, message);
}

}  // namespace log

}  // namespace hetseq
