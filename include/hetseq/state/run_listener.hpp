#pragma once

#include <string>

namespace hetseq {

/// What a run tells those who listen to it.
enum class ToldEvent { start, update, validation, checkpoint, end };

/// Hears on rank 0 how a run goes, beside the files of the run. The trainer does not wait for what
/// it does with that.
class RunListener {
public:
    virtual ~RunListener() = default;
    /// Whether it wants to hear of such events: nothing is prepared for those that it does not.
    virtual bool hears(ToldEvent event) const = 0;
    /// Takes note of an event and returns at once. `info`: an object of JSON (docs/python.md).
    virtual void tell(ToldEvent event, const std::string& info) = 0;
    /// Throws what was thrown at an event before.
    virtual void require_no_failure() const = 0;
    /// Waits until all events were heard, and throws what was thrown at one of them.
    virtual void finish() = 0;
};

}  // namespace hetseq
