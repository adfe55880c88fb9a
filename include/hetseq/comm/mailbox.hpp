#pragma once

#include <memory>
#include <optional>
#include <string>

namespace hetseq {

class HostComm;

/// Messages of bytes between two ranks. Each pair's arrive in the order in which they were sent.
/// One thread of a rank uses it. Throws CommError when MPI reports a failure.
class Mailbox {
public:
    struct Message {
        int from = 0;
        std::string bytes;
    };

    /// Collective. On a communicator of its own.
    explicit Mailbox(const HostComm& world);
    ~Mailbox();
    Mailbox(Mailbox&&) noexcept;

    int rank() const noexcept;
    int size() const noexcept;

    /// Returns at once. `rank` is another one.
    void send(int rank, std::string bytes);
    /// A message that is there, of whichever rank. Never blocks.
    std::optional<Message> receive();
    /// Waits for the next one, and sleeps between its tests.
    Message wait();
    /// Waits until all that was sent has left; sleeps between its tests.
    void flush();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
