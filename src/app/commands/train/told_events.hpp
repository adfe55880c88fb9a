#pragma once

#include <string>

namespace hetseq {

struct CommandContext;
class Replica;
class RunFolder;
struct RunSettings;
class Training;

/// Tell the listener of the parts, if there is one, of a run's beginning and end: on rank 0, and on
/// ranks that share its exit code. Collective: all ranks throw what it has thrown. `folder` may be
/// null.
void tell_start(const CommandContext& context,
                const RunSettings& settings,
                const Replica& replica,
                Training& training,
                const RunFolder* folder);
/// `summary`: the text of summary.json. Waits until all events were heard.
void tell_end(const CommandContext& context, const std::string& summary);

}  // namespace hetseq
