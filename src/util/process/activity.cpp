#include "hetseq/util/process/activity.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <utility>

#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/util/process/profiler_range.hpp"

namespace hetseq {

namespace {

constexpr std::uint64_t waits_bit = 0x80;
constexpr std::uint64_t own_work_bit = 0x40;
constexpr std::uint64_t phase_mask = 0x3f;
constexpr int update_shift = 8;

// A reader loads `stretch` first and `since` after it; a writer stores them in the other order. So
// a reader in between sees a stretch that is too short, never one that is too long.
struct State {
    std::atomic<std::uint64_t> stretch{0};  // update, waits, own work, phase
    std::atomic<std::int64_t> since_ns{0};  // 0: nothing was entered yet
    std::atomic<std::int64_t> changes{0};
    std::array<std::atomic<std::int64_t>, 256> longest_ns{};  // by the low byte of `stretch`
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

constinit State state;
thread_local bool is_jobs_thread = false;
thread_local activity::Helper* helper_of_thread = nullptr;

std::int64_t now_ns() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::atomic<std::int64_t>& longest_of(std::uint64_t stretch) noexcept {
    return state.longest_ns[stretch & (waits_bit | own_work_bit | phase_mask)];
}

void change(std::uint64_t stretch) noexcept {
    const std::int64_t now = now_ns();
    const std::int64_t since = state.since_ns.load(std::memory_order_relaxed);
    auto& longest = longest_of(state.stretch.load(std::memory_order_relaxed));
    if (since != 0 && now - since > longest.load(std::memory_order_relaxed))
        longest.store(now - since, std::memory_order_relaxed);
    state.since_ns.store(now, std::memory_order_relaxed);
    state.stretch.store(stretch, std::memory_order_release);
    state.changes.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t current() noexcept {
    return state.stretch.load(std::memory_order_relaxed);
}

bool phase_waits(Phase phase) noexcept {
    return phase == Phase::agreeing || phase == Phase::reducing;
}

}  // namespace

const char* to_string(Phase phase) noexcept {
    switch (phase) {
        case Phase::starting:
            return "starting";
        case Phase::loading:
            return "loading";
        case Phase::agreeing:
            return "agreeing";
        case Phase::computing:
            return "computing";
        case Phase::reducing:
            return "reducing";
        case Phase::optimizing:
            return "optimizing";
        case Phase::validating:
            return "validating";
        case Phase::saving:
            return "saving";
        case Phase::ending:
            return "ending";
    }
    return "at work";
}

std::string phase_text(Phase phase, std::int64_t update) {
    const std::string name = to_string(phase);
    switch (phase) {
        case Phase::starting:
        case Phase::ending:
            return name;
        case Phase::validating:
        case Phase::saving:
            return name + " after update " + std::to_string(update);
        case Phase::agreeing:
            return name + " on update " + std::to_string(update);
        default:
            return name + " update " + std::to_string(update);
    }
}

void activity::enter(Phase phase, std::int64_t update) {
    is_jobs_thread = true;
    change(static_cast<std::uint64_t>(update) << update_shift | static_cast<std::uint64_t>(phase));
    show_phase(phase, update);
    fault_point(to_string(phase), update);
}

void activity::enter(Phase phase) {
    enter(phase, static_cast<std::int64_t>(current() >> update_shift));
}

void activity::progress() noexcept {
    if (is_jobs_thread)
        change(current());
    else if (helper_of_thread != nullptr)
        helper_of_thread->pieces_.fetch_add(1, std::memory_order_relaxed);
}

activity::Helper::Thread::Thread(Helper& helper) noexcept
    : before_{std::exchange(helper_of_thread, &helper)} {}

activity::Helper::Thread::~Thread() {
    helper_of_thread = before_;
}

void activity::Helper::pass_on() noexcept {
    const std::int64_t pieces = pieces_.load(std::memory_order_relaxed);
    if (std::exchange(passed_on_, pieces) != pieces)
        progress();
}

Activity activity::now() noexcept {
    const std::uint64_t stretch = state.stretch.load(std::memory_order_acquire);
    const std::int64_t since = state.since_ns.load(std::memory_order_relaxed);
    Activity seen;
    seen.phase = static_cast<Phase>(stretch & phase_mask);
    seen.waits =
        (stretch & waits_bit) != 0 || ((stretch & own_work_bit) == 0 && phase_waits(seen.phase));
    seen.update = static_cast<std::int64_t>(stretch >> update_shift);
    seen.changes = state.changes.load(std::memory_order_relaxed);
    seen.seconds = since == 0 ? 0 : 1e-9 * static_cast<double>(now_ns() - since);
    seen.longest = 1e-9 * static_cast<double>(longest_of(stretch).load(std::memory_order_relaxed));
    return seen;
}

activity::Waiting::Waiting() noexcept : counts_{is_jobs_thread && (current() & waits_bit) == 0} {
    if (counts_)
        change(current() | waits_bit);
}

activity::Waiting::~Waiting() {
    if (counts_)
        change(current() & ~waits_bit);
}

activity::OwnWork::OwnWork() noexcept
    : counts_{is_jobs_thread && (current() & (waits_bit | own_work_bit)) == 0} {
    if (counts_)
        change(current() | own_work_bit);
}

activity::OwnWork::~OwnWork() {
    if (counts_)
        change(current() & ~own_work_bit);
}

}  // namespace hetseq
