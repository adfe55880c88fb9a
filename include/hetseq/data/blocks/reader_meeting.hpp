#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace hetseq {

class HostComm;

/// The I/O threads of a host meet here before each block. If one of them is abandoned, it says so
/// here and all of them stop. So no thread stays inside a collective read that the others never
/// enter. Only the I/O thread uses it.
class ReaderMeeting {
public:
    /// `abandoned` says if this rank's thread is abandoned. `patience` is how long an abandoned
    /// thread waits for the others, which may be gone.
    ReaderMeeting(std::shared_ptr<const HostComm> node,
                  std::function<bool()> abandoned,
                  std::chrono::milliseconds patience = std::chrono::seconds{5});

    const std::function<bool()>& abandoned() const noexcept { return abandoned_; }
    /// Collective. True if all ranks of the host read the next block. After it was false once, it
    /// is false at once and for ever.
    bool all_go_on();

private:
    std::shared_ptr<const HostComm> node_;
    std::function<bool()> abandoned_;
    std::chrono::milliseconds patience_;
    bool stopped_ = false;
};

}  // namespace hetseq
