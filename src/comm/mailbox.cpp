#include "hetseq/comm/mailbox.hpp"

#include <limits>
#include <list>
#include <utility>

#include <mpi.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "backoff.hpp"
#include "sleeping_wait.hpp"

namespace hetseq {

namespace {

constexpr int mail_tag = 0;

struct Outgoing {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
};

int mail_size(const std::string& bytes) {
    HETSEQ_ASSERT(bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
    return static_cast<int>(bytes.size());
}

}  // namespace

struct Mailbox::Impl {
    explicit Impl(const HostComm& world) : comm{world.duplicate()} {}

    void forget_delivered() {
        outgoing.remove_if([](Outgoing& one) {
            int complete = 0;
            MPI_TRY(MPI_Test(&one.request, &complete, MPI_STATUS_IGNORE));
            return complete != 0;
        });
    }

    HostComm comm;
    std::list<Outgoing> outgoing;  // MPI knows the places
};

Mailbox::Mailbox(const HostComm& world) : impl_{std::make_unique<Impl>(world)} {}
Mailbox::Mailbox(Mailbox&&) noexcept = default;

// While an exception unwinds, a message may be left that nobody takes; MPI keeps its bytes.
Mailbox::~Mailbox() {
    if (impl_ && !impl_->outgoing.empty())
        static_cast<void>(impl_.release());
}

int Mailbox::rank() const noexcept {
    return impl_->comm.rank();
}

int Mailbox::size() const noexcept {
    return impl_->comm.size();
}

void Mailbox::send(int rank, std::string bytes) {
    HETSEQ_ASSERT(rank >= 0 && rank < size() && rank != this->rank());
    impl_->forget_delivered();
    Outgoing& one = impl_->outgoing.emplace_back(Outgoing{std::move(bytes)});
    MPI_TRY(MPI_Isend(one.bytes.data(),
                      mail_size(one.bytes),
                      MPI_BYTE,
                      rank,
                      mail_tag,
                      mpi_handle(impl_->comm),
                      &one.request));
}

std::optional<Mailbox::Message> Mailbox::receive() {
    if (size() == 1)
        return std::nullopt;
    impl_->forget_delivered();
    int is_there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    MPI_TRY(MPI_Improbe(
        MPI_ANY_SOURCE, mail_tag, mpi_handle(impl_->comm), &is_there, &message, &status));
    if (is_there == 0)
        return std::nullopt;
    int bytes = 0;
    MPI_TRY(MPI_Get_count(&status, MPI_BYTE, &bytes));
    Message result{status.MPI_SOURCE, std::string(static_cast<std::size_t>(bytes), '\0')};
    run_sleeping([&](MPI_Request* request) {
        MPI_TRY(MPI_Imrecv(result.bytes.data(), bytes, MPI_BYTE, &message, request));
    });
    return result;
}

Mailbox::Message Mailbox::wait() {
    HETSEQ_ASSERT(size() > 1);
    const activity::Waiting waiting;
    Backoff backoff{Backoff::Options{}};
    for (;;) {
        if (std::optional<Message> message = receive())
            return std::move(*message);
        backoff.pause();
    }
}

void Mailbox::flush() {
    Backoff backoff{Backoff::Options{}};
    for (impl_->forget_delivered(); !impl_->outgoing.empty(); impl_->forget_delivered())
        backoff.pause();
}

}  // namespace hetseq
