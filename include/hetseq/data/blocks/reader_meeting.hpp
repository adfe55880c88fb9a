#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace hetseq {

class HostComm;

/// Where the I/O threads of a host meet before each block. A thread that is abandoned says so
/// there, and all of them stop: none is left inside a collective read that the others never enter.
/// Used by the I/O thread alone.
class ReaderMeeting {
public:
    /// `abandoned` says whether this rank's thread is. `patience`: how long an abandoned one waits
    /// for the others, which may be gone.
    ReaderMeeting(std::shared_ptr<const HostComm> node,
                  std::function<bool()> abandoned,
                  std::chrono::milliseconds patience = std::chrono::seconds{5});

    const std::function<bool()>& abandoned() const noexcept { return abandoned_; }
    /// Collective. True where all ranks of the host read the next block; once false, always false
    /// and at once.
    bool all_go_on();

private:
    std::shared_ptr<const HostComm> node_;
    std::function<bool()> abandoned_;
    std::chrono::milliseconds patience_;
    bool stopped_ = false;
};

}  // namespace hetseq
