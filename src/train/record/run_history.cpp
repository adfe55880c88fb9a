#include "hetseq/train/record/run_history.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <system_error>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/files/temporary_name.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"
#include "hetseq/util/log.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

constexpr double hour_s = 3600, day_s = 86400;
constexpr std::size_t most_starts = 200;
constexpr double written_every_s = 3;
constexpr double most_seconds = 1e12;
constexpr std::int64_t most_updates = 1'000'000'000'000;
constexpr int most_ranks = 1 << 24;

std::optional<CheckpointCost> cost_of(const nlohmann::json& json) {
    if (!json.contains("checkpoint"))
        return std::nullopt;
    const auto seconds = [&](const char* name) {
        return json_number(json.at("checkpoint").at(name), 0, day_s);
    };
    return CheckpointCost{seconds("training_s"), seconds("writing_s")};
}

std::vector<SlowDevice> slow_of(const nlohmann::json& json) {
    std::vector<SlowDevice> slow;
    if (json.contains("slow"))
        for (const nlohmann::json& device : json.at("slow"))
            slow.push_back({device.at("device").get<std::string>(),
                            json_number(device.at("speed"), 0, 1),
                            json_number(device.at("seen"), 0, most_seconds)});
    return slow;
}

// Throws the library's exceptions and BadData.
RunStart start_of(const nlohmann::json& json) {
    const auto seconds = [&](const char* name) {
        return json_number(json.at(name), 0, most_seconds);
    };
    const auto number = [&](const char* name, std::int64_t most) {
        return json_integer(json.at(name), 0, most);
    };
    RunStart start{.began = seconds("began"),
                   .seen = seconds("seen"),
                   .ended = json.at("ended").is_null() ? "" : json.at("ended").get<std::string>(),
                   .ranks = static_cast<int>(number("ranks", most_ranks)),
                   .first_update = number("first_update", most_updates),
                   .updates = number("updates", most_updates),
                   .starting_s = seconds("starting_s"),
                   .updating_s = seconds("updating_s"),
                   .validating_s = seconds("validating_s"),
                   .saving_s = seconds("saving_s"),
                   .validation_s = json.contains("validation_s") ? seconds("validation_s") : 0,
                   .checkpoint = cost_of(json),
                   .slow = slow_of(json)};
    start.seen = std::max(start.seen, start.began);
    start.updates = std::max(start.updates, start.first_update);
    return start;
}

nlohmann::ordered_json json_of(const RunStart& start) {
    nlohmann::ordered_json json{{"began", start.began},
                                {"seen", start.seen},
                                {"ended", nullptr},
                                {"ranks", start.ranks},
                                {"first_update", start.first_update},
                                {"updates", start.updates},
                                {"starting_s", start.starting_s},
                                {"updating_s", start.updating_s},
                                {"validating_s", start.validating_s},
                                {"saving_s", start.saving_s},
                                {"validation_s", start.validation_s}};
    if (!start.ended.empty())
        json["ended"] = start.ended;
    if (start.checkpoint)
        json["checkpoint"] = {{"training_s", start.checkpoint->training_s},
                              {"writing_s", start.checkpoint->writing_s}};
    for (const SlowDevice& slow : start.slow)
        json["slow"].push_back(
            {{"device", slow.device}, {"speed", slow.speed}, {"seen", slow.seen}});
    return json;
}

// As it was when it died: the checkpoint from which `next` goes on may be younger than the last
// sign of life.
RunStart until_death(RunStart start, const RunStart& next) {
    const std::int64_t seen = start.updates - start.first_update;
    const std::int64_t more = next.first_update - start.updates;
    if (seen <= 0 || more <= 0)
        return start;
    const double more_s =
        std::min(start.updating_s / static_cast<double>(seen) * static_cast<double>(more),
                 std::max(0.0, next.began - start.seen));
    start.updates = next.first_update;
    start.updating_s += more_s;
    start.seen += more_s;
    return start;
}

// The updates that `next` computes again.
std::int64_t updates_lost(const RunStart& start, const RunStart& next) {
    return std::clamp<std::int64_t>(
        start.updates - next.first_update, 0, start.updates - start.first_update);
}

void add(const RunStart& start, std::int64_t lost, Goodput& sum) {
    const std::int64_t computed = start.updates - start.first_update;
    const double lost_s =
        computed > 0 ? start.updating_s * static_cast<double>(lost) / static_cast<double>(computed)
                     : 0;
    sum.updating_s += start.updating_s - lost_s;
    sum.lost_s += lost_s;
    sum.starting_s += start.starting_s;
    sum.validating_s += start.validating_s;
    sum.saving_s += start.saving_s;
    sum.other_s += std::max(0.0,
                            start.seconds() - start.updating_s - start.starting_s -
                                start.validating_s - start.saving_s);
}

}  // namespace

double Goodput::seconds() const noexcept {
    double sum = 0;
    for (const GoodputPart& part : goodput_parts)
        sum += this->*part.seconds;
    return sum;
}

std::size_t failures(std::span<const RunStart> starts) {
    if (starts.empty())
        return 0;
    return static_cast<std::size_t>(
        std::count_if(starts.begin(), starts.end() - 1, [](const RunStart& start) {
            return start.ended.empty();
        }));
}

std::vector<SlowDevice> slow_devices(std::span<const RunStart> starts, double now) {
    std::vector<SlowDevice> slow;
    if (!starts.empty())
        slow = starts.back().slow;
    std::erase_if(slow,
                  [&](const SlowDevice& device) { return std::abs(now - device.seen) > day_s; });
    return slow;
}

double mean_time_between_failures_s(std::span<const RunStart> starts) {
    double seconds = 0;
    for (const RunStart& start : starts)
        seconds += start.seconds();
    const std::size_t failed = failures(starts);
    return failed > 0 ? seconds / static_cast<double>(failed) : std::min(day_s, hour_s + seconds);
}

Goodput goodput(std::span<const RunStart> starts) {
    Goodput sum{.starts = starts.size(), .failures = failures(starts)};
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        const RunStart start = until_death(starts[i], starts[i + 1]);
        add(start, updates_lost(start, starts[i + 1]), sum);
        sum.between_s += std::max(0.0, starts[i + 1].began - start.seen);
    }
    if (!starts.empty())
        add(starts.back(), 0, sum);
    return sum;
}

std::vector<RunStart> read_run_history(const std::filesystem::path& file, DamagedHistory damaged) {
    try {
        const std::optional<std::string> text = read_file_text(file);
        std::vector<RunStart> starts;
        if (!text)
            return starts;
        const auto json = parse_json<nlohmann::json>(*text);
        for (const nlohmann::json& start : json.at("starts"))
            starts.push_back(start_of(start));
        return starts;
    } catch (const std::exception& error) {
        if (damaged == DamagedHistory::told)
            log::warn(
                file.string() + " cannot be read (" + error.what() +
                "): what earlier starts of the run took is not known, and the history begins anew");
        return {};
    }
}

RunHistory::Clock::Clock()
    : since_1970{[] {
          return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
              .count();
      }},
      monotonic{monotonic_seconds} {}

RunHistory::RunHistory(std::filesystem::path file,
                       double seconds_ago,
                       int ranks,
                       std::int64_t first_update,
                       std::function<bool()> may_write,
                       const Clock& clock)
    : file_{std::move(file)},
      may_write_{std::move(may_write)},
      clock_{clock},
      starts_{read_run_history(file_)},
      began_{clock_.monotonic() - seconds_ago} {
    if (starts_.size() >= most_starts)
        starts_.erase(starts_.begin(), starts_.end() - most_starts + 1);
    const double now = clock_.since_1970();
    std::vector<SlowDevice> slow = slow_devices(starts_, now);
    starts_.push_back({.began = now - seconds_ago,
                       .seen = now,
                       .ranks = ranks,
                       .first_update = first_update,
                       .updates = first_update,
                       .slow = std::move(slow)});
    write();
}

std::optional<CheckpointCost> RunHistory::known_cost() const {
    for (auto start = starts_.rbegin(); start != starts_.rend(); ++start)
        if (start->checkpoint)
            return start->checkpoint;
    return std::nullopt;
}

double RunHistory::known_validation_s() const {
    for (auto start = starts_.rbegin(); start != starts_.rend(); ++start)
        if (start->validation_s > 0)
            return start->validation_s;
    return 0;
}

void RunHistory::started() {
    current().starting_s = clock_.monotonic() - began_;
    see(written_every_s);
}

void RunHistory::updated(std::int64_t updates, double seconds) {
    current().updates = updates;
    current().updating_s += seconds;
    see(written_every_s);
}

void RunHistory::validated(double seconds) {
    current().validating_s += seconds;
    current().validation_s = std::max(current().validation_s, seconds);
    see(written_every_s);
}

// So that the history is no older than the checkpoint that the next start finds.
void RunHistory::measured(const CheckpointCost& cost) {
    const bool is_first = !current().checkpoint;
    current().checkpoint = cost;
    see(is_first ? 0 : 1);
}

void RunHistory::slow(const std::string& device, double speed) {
    recovered(device);
    current().slow.push_back({device, speed, clock_.since_1970()});
    see(0);
}

void RunHistory::recovered(const std::string& device) {
    std::erase_if(current().slow, [&](const SlowDevice& slow) { return slow.device == device; });
    see(0);
}

bool RunHistory::is_slow(const std::string& device) const {
    const std::vector<SlowDevice>& slow = starts_.back().slow;
    return std::any_of(
        slow.begin(), slow.end(), [&](const SlowDevice& one) { return one.device == device; });
}

void RunHistory::end(const std::string& how) {
    current().ended = how;
    current().seen = current().began + clock_.monotonic() - began_;
    write();
}

// A clock of the day may be set back; the time that has passed may not.
void RunHistory::see(double least_s) {
    const double now = clock_.monotonic();
    if (now - written_ < least_s)
        return;
    written_ = now;
    current().seen = current().began + now - began_;
    write();
}

void RunHistory::write() const {
    if (!may_write_())
        return;
    auto starts = nlohmann::ordered_json::array();
    for (const RunStart& start : starts_)
        starts.push_back(json_of(start));
    const std::filesystem::path temporary = temporary_beside(file_);
    std::error_code ignored;
    std::ofstream out(temporary);
    out << json_text(nlohmann::ordered_json{{"starts", starts}}, 1) << '\n';
    out.close();  // where a file system says whether there was room
    if (out)
        std::filesystem::rename(temporary, file_, ignored);
    std::filesystem::remove(temporary, ignored);
}

}  // namespace hetseq
