#pragma once

#include <set>
#include <string>

namespace hetseq {

/// Signals as requests that the program looks up when it can act on them. One a process, like the
/// handlers behind it. The first request is kept; a signal that asks to stop again more than 5 s
/// later ends the process at once, with 128 + its number: schedulers and mpirun may both deliver
/// the same request. A second SIGINT (Ctrl-C) ends it at once whenever it comes. Broken pipes and
/// files beyond their limit become errors of the writing call.
namespace signal_inbox {

/// Catches USR1, USR2, XCPU, TERM and INT, which are kept until `choose` or `release` says what
/// they are for. INT stays ignored where it was, as in the background of a script. Called first in
/// `main`.
void open();

/// From now on `stop` ask to stop and `checkpoint` to save; those of the five in neither have their
/// default effect, also when they came before.
void choose(const std::set<int>& stop, const std::set<int>& checkpoint);

/// All have their default effect again, also those that came before.
void release();

/// Signals that ask for the same less than this apart are one request [s].
constexpr int repeat_seconds = 5;

/// The signal that asked to stop; 0: none.
int stop_signal() noexcept;
/// How often a checkpoint was asked for.
int checkpoint_requests() noexcept;

}  // namespace signal_inbox

/// "SIGUSR1"
std::string signal_name(int signal);
/// The signals that a list such as "USR1,SIGTERM" names; none for an empty one or "none". Throws
/// BadConfig, naming what may be given: USR1, USR2, XCPU, TERM, INT.
std::set<int> parse_signals(const std::string& list);

}  // namespace hetseq
