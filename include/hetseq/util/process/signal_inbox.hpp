#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace hetseq {

/// Signals become requests that the program looks up when it can act on them. There is one inbox
/// per process, like the handlers behind it. The first request is kept. A signal that asks to stop
/// again within 5 s counts as the same request, since schedulers and mpirun may both deliver it; a
/// later one ends the process at once, with 128 + its number. A second SIGINT (Ctrl-C) always ends
/// it at once. Broken pipes and files beyond their limit become errors of the writing call.
namespace signal_inbox {

/// As far apart as signals that ask for the same may be [s].
constexpr std::int64_t repeat_seconds = 5;

/// Catches USR1, USR2, XCPU, TERM and INT, which are kept until `choose` or `release` says what
/// they are for. INT stays ignored where it was, as in the background of a script. Called first in
/// `main`. Forgets what came before.
void open();

/// From now on, the signals in `stop` ask to stop and those in `checkpoint` ask to save. Those of
/// the five that are in neither have their default effect, even if they came before.
/// Signals that ask to stop less than `repeat_s` apart are one request [s].
void choose(const std::set<int>& stop,
            const std::set<int>& checkpoint,
            std::int64_t repeat_s = repeat_seconds);

/// All signals have their default effect again, even those that came before.
void release();

/// The signal that asked to stop; 0: none.
int stop_signal() noexcept;
/// The number of requests for a checkpoint.
int checkpoint_requests() noexcept;

}  // namespace signal_inbox

/// "SIGUSR1"
std::string signal_name(int signal);
/// The signals that a list such as "USR1,SIGTERM" names; none for an empty list or "none". Throws
/// BadConfig, naming what may be given: USR1, USR2, XCPU, TERM, INT.
std::set<int> parse_signals(const std::string& list);

}  // namespace hetseq
