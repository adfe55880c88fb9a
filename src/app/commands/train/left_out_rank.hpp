#pragma once

#include <string>

namespace hetseq {

class HostRequest;

/// A rank that was left out of a run: waits for `end`, and passes a signal that asks to stop on to
/// the others. `save_dir`: the run's folder; empty: it has none.
void wait_for_the_others(HostRequest& end, const std::string& save_dir);

}  // namespace hetseq
