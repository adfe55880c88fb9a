#include "hetseq/comm/mpi/peer_channel.hpp"

#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include <c10/core/DeviceGuard.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "comm/backoff.hpp"
#include "peers/message_exchange.hpp"
#include "peers/peer_links.hpp"
#include "peers/peer_relation.hpp"
#include <pthread.h>

namespace hetseq {

namespace {

// At 100 Mbit/s, looks took 1.5 % of a core, which is a tenth of what a host of 0.16 cores has.
constexpr Backoff::Options few_looks{.longest_sleep = std::chrono::microseconds{500},
                                     .longest_in_long_waits = std::chrono::microseconds{8000},
                                     .part_of_wait = 16};

std::vector<std::pair<int, std::string>> with_hosts(const HostComm& world,
                                                    const std::vector<int>& peers) {
    const std::vector<std::string> hosts = world.all_gather(host_name());
    std::vector<std::pair<int, std::string>> named;
    for (const int peer : peers)
        named.emplace_back(peer, hosts[static_cast<std::size_t>(peer)]);
    return named;
}

}  // namespace

struct PeerChannel::Impl {
    Impl(const HostComm& world,
         const std::vector<int>& peers,
         at::Device where,
         const Options& chosen)
        : options{chosen},
          device{where},
          links{world, peers, where, chosen},
          exchange{with_hosts(world, peers), chosen.deadline},
          at_rest{peers.empty()} {
        if (!at_rest)
            thread = std::thread{&Impl::run, this};
    }

    // Who computes may take a lack of memory for one of its own, and go on, while nothing is sent
    // or received any more. So whatever ends the thread is an error of communication.
    void run() noexcept {
        pthread_setname_np(pthread_self(), "hetseq-peers");
        sleep_precisely();
        try {
            const c10::DeviceGuard guard{device};  // pinned memory belongs to its context
            move_all();
        } catch (const CommError&) {
            exchange.fail(std::current_exception());
        } catch (const std::exception& error) {
            log::here(log::Level::error, error.what());
            exchange.fail(std::make_exception_ptr(
                CommError("messages between stages of a pipeline have failed",
                          "the error is above",
                          "see what it says; where memory lacks, use smaller micro-batches")));
        }
    }

    void move_all() {
        Backoff backoff{options.lacks_cores ? few_looks : Backoff::Options{}};
        for (bool moved = false; exchange.hand_over(links, moved);) {
            moved = links.advance();
            if (moved)
                backoff.reset();
            else if (const auto time = backoff.next_sleep(); time.count() > 0)
                exchange.sleep(time);
        }
        if (exchange.failed())
            return;
        links.cancel();
        at_rest = true;
        exchange.end();
    }

    // A failure that no caller was told of is logged.
    void end() noexcept {
        const bool is_told = exchange.is_told();
        try {
            if (thread.joinable())
                exchange.finish();
        } catch (const std::exception& error) {
            if (!is_told)
                log::here(log::Level::error, error.what());
        }
        if (thread.joinable())
            thread.join();
    }

    Options options;
    at::Device device;
    PeerLinks links;  // the thread's
    MessageExchange exchange;
    bool at_rest;  // MPI has nothing of it; the thread's until that has ended
    std::thread thread;
};

PeerChannel::PeerChannel(const HostComm& world,
                         const std::vector<int>& peers,
                         at::Device device,
                         ThreadSupport threads,
                         const Options& options) {
    HETSEQ_ASSERT(options.piece_bytes > 0 && options.most_sent > 0 && options.most_waiting > 0);
    HETSEQ_ASSERT(options.piece_bytes <= std::numeric_limits<int>::max());
    check_thread_support(world, threads);
    check_peers(world, peers);
    impl_ = std::make_unique<Impl>(world, peers, device, options);
}

PeerChannel::~PeerChannel() {
    if (std::uncaught_exceptions() > 0)
        abandon();
    impl_->end();
    if (!impl_->at_rest)
        static_cast<void>(impl_.release());
}

void PeerChannel::start_send(int peer, const std::vector<at::Tensor>& tensors) {
    fault_point("pipeline_send", activity::now().update);
    impl_->exchange.send(peer, SentMessage{tensors, impl_->options.piece_bytes});
}

std::vector<at::Tensor> PeerChannel::receive(int peer) {
    fault_point("pipeline_receive", activity::now().update);
    return impl_->exchange.receive(peer, impl_->device);
}

void PeerChannel::wait_for_sends() {
    impl_->exchange.wait_for_sends();
}

void PeerChannel::wait_for_sends(int peer, std::size_t most_left) {
    impl_->exchange.wait_for_sends(peer, most_left);
}

void PeerChannel::abandon() noexcept {
    impl_->exchange.abandon();
}

PeerChannel::Traffic PeerChannel::take_traffic() {
    return impl_->exchange.take_traffic();
}

}  // namespace hetseq
