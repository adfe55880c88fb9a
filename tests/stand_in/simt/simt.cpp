#include "simt.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace hetseq::simt {

Block::Block(unsigned threads, std::function<void()> body)
    : fibers_(threads), body_{std::move(body)} {
    for (Fiber& fiber : fibers_)
        fiber.stack = std::make_unique<char[]>(stack_bytes);
}

void Block::enter() {
    try {
        block->body_();
    } catch (...) {  // no exception may leave a fiber
        block->failure_ = std::current_exception();
    }
    block->wait(State::ended);
}

void Block::run() {
    for (Fiber& fiber : fibers_) {
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack.get();
        fiber.start.uc_stack.ss_size = stack_bytes;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, &Block::enter, 0);
        fiber.has_begun = false;
        fiber.state = State::runs;
    }
    while (!all_ended()) {
        const bool ran = run_those_that_can();
        const bool opened = open_barrier();
        const bool served = serve_shuffles();
        if (!ran && !opened && !served)
            throw KernelError(
                "the threads of a block wait for each other: a barrier or shuffle "
                "stands in a branch");
    }
}

void Block::resume(unsigned thread) {
    current_ = thread;
    set_thread_index(thread);
    if (_setjmp(scheduler_) == 0)
        go_on(fibers_[thread]);
    if (failure_)
        std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Block::wait(State state) {
    Fiber& fiber = fibers_[current_];
    fiber.state = state;
    if (_setjmp(fiber.place) == 0)
        _longjmp(scheduler_, 1);
}

// swapcontext would call the kernel twice each time, for signals: a third of the time.
void Block::go_on(Fiber& fiber) {
    if (fiber.has_begun)
        _longjmp(fiber.place, 1);
    fiber.has_begun = true;
    setcontext(&fiber.start);
    std::abort();  // it does not return
}

bool Block::all_ended() const {
    return std::all_of(
        fibers_.begin(), fibers_.end(), [](const Fiber& f) { return f.state == State::ended; });
}

bool Block::run_those_that_can() {
    bool ran = false;
    for (unsigned thread = 0; thread < fibers_.size(); ++thread)
        if (fibers_[thread].state == State::runs) {
            resume(thread);
            ran = true;
        }
    return ran;
}

bool Block::open_barrier() {
    bool somebody_waits = false;
    for (const Fiber& fiber : fibers_) {
        if (fiber.state != State::at_barrier && fiber.state != State::ended)
            return false;
        somebody_waits = somebody_waits || fiber.state == State::at_barrier;
    }
    for (Fiber& fiber : fibers_)
        if (fiber.state == State::at_barrier)
            fiber.state = State::runs;
    return somebody_waits;
}

bool Block::serve_shuffles() {
    bool served = false;
    for (unsigned thread = 0; thread < fibers_.size(); ++thread)
        if (fibers_[thread].state == State::at_shuffle)
            served = serve_shuffle(thread / warp * warp, fibers_[thread].mask) || served;
    return served;
}

bool Block::serve_shuffle(unsigned first_of_warp, unsigned mask) {
    std::vector<unsigned> members;
    for (unsigned lane = 0; lane < warp; ++lane)
        if ((mask >> lane & 1) != 0)
            members.push_back(first_of_warp + lane);
    for (const unsigned member : members) {
        if (member >= fibers_.size() || fibers_[member].state == State::ended)
            throw KernelError("a shuffle's mask names a lane that is not there");
        if (fibers_[member].state != State::at_shuffle || fibers_[member].mask != mask)
            return false;
    }
    std::vector<std::uint64_t> results;
    for (const unsigned member : members) {
        const unsigned lane = fibers_[member].lane;
        if ((mask >> lane & 1) == 0)
            throw KernelError("a shuffle reads a lane outside of its mask");
        results.push_back(fibers_[first_of_warp + lane].value);
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
        fibers_[members[i]].value = results[i];
        fibers_[members[i]].state = State::runs;
    }
    return true;
}

void Block::barrier() {
    wait(State::at_barrier);
}

std::uint64_t Block::shuffle(unsigned mask, std::uint64_t value, unsigned lane) {
    Fiber& fiber = fibers_[current_];
    if ((mask >> current_ % warp & 1) == 0)
        throw KernelError("a lane takes part in a shuffle whose mask does not name it");
    fiber.mask = mask;
    fiber.value = value;
    fiber.lane = lane;
    wait(State::at_shuffle);
    return fiber.value;
}

void launch(Dim grid, Dim threads, std::function<void()> kernel) {
    Block one(threads.count(), std::move(kernel));
    block = &one;
    try {
        for_each_block(grid, threads, [&] { one.run(); });
    } catch (...) {
        block = nullptr;
        throw;
    }
    block = nullptr;
}

}  // namespace hetseq::simt
