#include <algorithm>
#include <exception>

#include "hetseq/util/log.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_try.hpp"

#include "host_comm_impl.hpp"
#include "sleeping_wait.hpp"

namespace hetseq {

HostRequest::HostRequest() noexcept = default;
HostRequest::HostRequest(std::unique_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
HostRequest::HostRequest(HostRequest&&) noexcept = default;

HostRequest& HostRequest::operator=(HostRequest&& other) noexcept {
    HostRequest taken{std::move(other)};
    std::swap(impl_, taken.impl_);
    return *this;
}

HostRequest::~HostRequest() {
    if (!impl_)
        return;
    if (std::uncaught_exceptions() > 0) {
        // The other ranks may never come; MPI keeps the buffer until the job is aborted.
        static_cast<void>(impl_.release());
        return;
    }
    try {
        wait();
    } catch (const std::exception& error) {
        log::here(log::Level::error, error.what());
    }
}

bool HostRequest::test() {
    if (!impl_)
        return true;
    int complete = 0;
    MPI_TRY(MPI_Test(&impl_->request, &complete, MPI_STATUS_IGNORE));
    if (complete == 0)
        return false;
    std::copy(impl_->buffer.begin(), impl_->buffer.end(), impl_->result.begin());
    impl_.reset();
    return true;
}

void HostRequest::wait() {
    if (!impl_)
        return;
    sleeping_wait(impl_->request);
    test();
}

}  // namespace hetseq
