#include "hetseq/state/allocation_log.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/regular_file.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;  // written
// For reading. Objects of the ordered kind copy all that they hold, however deeply nested, as they
// grow.
using ReadJson = nlohmann::json;

constexpr std::int64_t most_updates = 1'000'000'000'000;
constexpr double most_square = 1e6;
constexpr std::int64_t most_units = 1'000'000'000'000;  // sums over any ranks do not overflow

constexpr std::string_view end_of_file = "]}\n";

Json entry_of(std::int64_t update, const std::vector<std::int64_t>& units) {
    return {{"update", update + 1}, {"units", units}};
}

// Throws the library's exceptions and BadData.
RecordedAllocations parse(const ReadJson& json) {
    RecordedAllocations recorded;
    for (const ReadJson& samples : json.value("micro_batches", ReadJson::array()))
        recorded.micro_batches.push_back(json_integer(samples, 0, most_units));
    recorded.item_cost.square = json_number(json.value("square", ReadJson(0)), 0, most_square);
    for (const ReadJson& entry : json.at("allocations")) {
        const std::int64_t update = json_integer(entry.at("update"), 1, most_updates);
        std::vector<std::int64_t> units;
        for (const ReadJson& share : entry.at("units"))
            units.push_back(json_integer(share, 0, most_units));
        if (!recorded.by_update.emplace(update - 1, std::move(units)).second)
            throw BadData("two entries are of update " + std::to_string(update));
    }
    return recorded;
}

void check(const std::vector<std::int64_t>& units,
           const std::vector<std::int64_t>& micro_batches,
           const std::string& path,
           const std::vector<std::int64_t>& capacities,
           std::int64_t batch_size) {
    if (units.size() != capacities.size())
        throw BadConfig(path + " is of " + std::to_string(units.size()) + " ranks",
                        "this job has " + std::to_string(capacities.size()),
                        "start as many, or use --balance auto");
    if (!micro_batches.empty() && micro_batches.size() != units.size())
        throw BadData(path + " has micro-batches of " + std::to_string(micro_batches.size()) +
                      " ranks and cuts for " + std::to_string(units.size()));
    for (std::size_t r = 0; r < micro_batches.size(); ++r)
        if (units[r] > 0 && micro_batches[r] == 0)
            throw BadData(path + " gives rank " + std::to_string(r) + " work and no micro-batch");
    for (std::size_t r = 0; r < units.size(); ++r)
        if (units[r] > 0 && capacities[r] == 0)
            throw BadConfig(path + " gives rank " + std::to_string(r) + " work",
                            "its --max-sentences or --max-tokens is 0",
                            "give it a capacity, or use --balance auto");
    const std::int64_t sum = std::accumulate(units.begin(), units.end(), std::int64_t{0});
    if (sum != batch_size)
        throw BadConfig(path + " cuts batches of " + std::to_string(sum) + " units",
                        "this job's have " + std::to_string(batch_size),
                        "give that --batch-size, or use --balance auto");
}

}  // namespace

AllocationsByUpdate::const_iterator holding_at(const AllocationsByUpdate& allocations,
                                               std::int64_t update) {
    const auto next = allocations.upper_bound(update);
    return next == allocations.begin() ? allocations.end() : std::prev(next);
}

std::int64_t RecordedAllocations::full_batch() const {
    const std::vector<std::int64_t>& units = by_update.begin()->second;
    return std::accumulate(units.begin(), units.end(), std::int64_t{0});
}

bool AllocationLog::add(std::int64_t update, const std::vector<std::int64_t>& allocation) {
    const auto before = holding_at(allocations_, update);
    const bool is_new = before == allocations_.end() || before->second != allocation;
    const bool is_last = allocations_.empty() || allocations_.rbegin()->first < update;
    if (is_new)
        allocations_[update] = allocation;
    if (path_.empty() || (is_written_ && !is_new) || !may_write_())
        return is_new;
    if (!is_written_ || !is_last || !append(json_text(entry_of(update, allocation))))
        write_all();
    is_written_ = true;
    return is_new;
}

void AllocationLog::write_all() const {
    Json json{{"ranks", allocations_.begin()->second.size()},
              {"micro_batches", micro_batches_},
              {"square", item_cost_.square},
              {"allocations", Json::array()}};
    for (const auto& [update, units] : allocations_)
        json["allocations"].push_back(entry_of(update, units));
    write_atomically(path_, json_text(json) + "\n");
}

// Puts one more entry before the brackets that end the file. Returns false, and leaves the file as
// it was, where it does not end so or cannot be written.
bool AllocationLog::append(const std::string& entry) const {
    const UniqueHandle<detail::FileDescriptorTraits> file{
        ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
    const off_t size = file ? ::lseek(file.get(), 0, SEEK_END) : -1;
    const off_t place = size - std::ssize(end_of_file);
    std::string end(end_of_file.size(), '\0');
    if (place < 0 ||
        ::pread(file.get(), end.data(), end.size(), place) != std::ssize(end_of_file) ||
        end != end_of_file)
        return false;
    const std::string text = "," + entry + std::string(end_of_file);
    if (::pwrite(file.get(), text.data(), text.size(), place) == std::ssize(text))
        return true;
    // What was there before needs no space.
    static_cast<void>(::pwrite(file.get(), end.data(), end.size(), place) >= 0 &&
                      ::ftruncate(file.get(), size) == 0);
    return false;
}

RecordedAllocations read_allocations(const std::filesystem::path& path,
                                     const std::vector<std::int64_t>& capacities,
                                     std::int64_t batch_size) {
    check_text_file(path);
    std::ifstream file{path};
    if (!file)
        throw MissingInput("cannot read " + path.string(),
                           "--balance file: needs the allocations.json of a run",
                           "check the path");
    RecordedAllocations recorded;
    try {
        recorded = parse(parse_json<ReadJson>(file));
    } catch (const std::exception& error) {
        throw BadData(path.string() + " holds no allocations", error.what());
    }
    if (recorded.by_update.count(0) == 0)
        throw BadData(path.string() + " does not say how the first update is cut",
                      "no entry for update 1");
    const std::int64_t expected = batch_size > 0 ? batch_size : recorded.full_batch();
    for (const auto& [update, units] : recorded.by_update)
        check(units, recorded.micro_batches, path.string(), capacities, expected);
    return recorded;
}

}  // namespace hetseq
