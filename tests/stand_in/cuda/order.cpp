#include "order.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "pinned.hpp"
#include "runtime.hpp"

namespace hetseq::stand_in {

namespace {

// A piece of a stream's work.
struct Work {
    std::size_t stream = 0;
    long time = 0;
    const char* what = "";
};

// The last uses of some bytes, up to `end`.
struct Span {
    const char* end = nullptr;
    std::optional<Work> written;
    std::map<std::size_t, Work> read;  // by stream, since it was written
};

struct Order {
    std::mutex mutex;
    std::vector<Clock> streams;
    Clock host;
    std::map<const char*, Span> memory;  // by the first byte
    std::set<std::string> reported;

    Clock& clock(std::size_t stream) {
        if (streams.size() <= stream)
            streams.resize(stream + 1);
        return streams[stream];
    }
};

Order& order() {
    static auto* const order = new Order;
    return *order;
}

// A span begins or ends at `place`, where one reached over it.
void split(std::map<const char*, Span>& memory, const char* place) {
    auto found = memory.upper_bound(place);
    if (found == memory.begin())
        return;
    --found;
    if (found->first == place || found->second.end <= place)
        return;
    memory.emplace(place, found->second);
    found->second.end = place;
}

// `visit` the spans of [begin, end), all of which are in `memory` afterwards.
template <class Visit>
void for_each_span(std::map<const char*, Span>& memory,
                   const char* begin,
                   const char* end,
                   Visit&& visit) {
    split(memory, begin);
    split(memory, end);
    auto span = memory.lower_bound(begin);
    for (const char* place = begin; place < end; ++span) {
        if (span == memory.end() || span->first > place)
            span = memory.emplace_hint(
                span, place, Span{span == memory.end() ? end : std::min(span->first, end), {}, {}});
        visit(span->second);
        place = span->second.end;
    }
}

std::string text(const Work& work) {
    return std::string(work.what) + " on stream " + std::to_string(work.stream);
}

void check(Order& order, const Work& now, const char* does, const Work& earlier, const char* did) {
    if (order.clock(now.stream).at(earlier.stream) >= earlier.time)
        return;
    std::string misuse = text(now) + " " + does + " memory that " + text(earlier) + " " + did +
                         ", and has not waited for it";
    if (order.reported.insert(misuse).second)
        report_misuse(misuse);
}

void add_use(Order& order, const Work& now, const Use& use) {
    const auto* const begin = static_cast<const char*>(use.begin);
    const char* const end = begin + use.bytes;
    if (use.access == Access::read) {
        for_each_span(order.memory, begin, end, [&](Span& span) {
            if (span.written)
                check(order, now, "reads", *span.written, "writes");
            span.read[now.stream] = now;
        });
        return;
    }
    for_each_span(order.memory, begin, end, [&](const Span& span) {
        if (span.written)
            check(order, now, "writes", *span.written, "writes");
        for (const auto& [stream, work] : span.read)
            check(order, now, "writes", work, "reads");
    });
    order.memory.erase(order.memory.lower_bound(begin), order.memory.lower_bound(end));
    order.memory[begin] = {end, now, {}};
}

}  // namespace

void Clock::set(std::size_t stream, long time) {
    if (times_.size() <= stream)
        times_.resize(stream + 1);
    times_[stream] = time;
}

void Clock::join(const Clock& other) {
    if (times_.size() < other.times_.size())
        times_.resize(other.times_.size());
    for (std::size_t i = 0; i < other.times_.size(); ++i)
        times_[i] = std::max(times_[i], other.times_[i]);
}

bool Clock::covers(const Clock& other) const {
    for (std::size_t i = 0; i < other.times_.size(); ++i)
        if (at(i) < other.times_[i])
            return false;
    return true;
}

long order_work(std::size_t stream, const char* what, const std::vector<Use>& uses) {
    Order& all = order();
    const std::lock_guard lock{all.mutex};
    Clock& clock = all.clock(stream);
    clock.join(all.host);  // the host has waited before it gives the work
    const Work now{stream, clock.at(stream) + 1, what};
    clock.set(stream, now.time);
    for (const Use& one : uses)
        if (one.bytes > 0)
            add_use(all, now, one);
    return now.time;
}

Clock clock_of(std::size_t stream) {
    const std::lock_guard lock{order().mutex};
    return order().clock(stream);
}

void stream_waits(std::size_t stream, const Clock& clock) {
    const std::lock_guard lock{order().mutex};
    order().clock(stream).join(clock);
}

void host_waits(const Clock& clock) {
    {
        const std::lock_guard lock{order().mutex};
        order().host.join(clock);
    }
    open_pinned_memory();
}

bool host_knows(std::size_t stream, long time) {
    const std::lock_guard lock{order().mutex};
    return order().host.at(stream) >= time;
}

bool host_knows(const Clock& clock) {
    const std::lock_guard lock{order().mutex};
    return order().host.covers(clock);
}

void forget_uses(const void* begin, std::size_t bytes) {
    const auto* const first = static_cast<const char*>(begin);
    std::map<const char*, Span>& memory = order().memory;
    const std::lock_guard lock{order().mutex};
    split(memory, first);
    split(memory, first + bytes);
    memory.erase(memory.lower_bound(first), memory.lower_bound(first + bytes));
}

}  // namespace hetseq::stand_in
