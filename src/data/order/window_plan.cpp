#include "hetseq/data/order/window_plan.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "hetseq/util/error.hpp"
#include "hetseq/data/order/keyed_permutation.hpp"

namespace hetseq {

namespace {

constexpr std::size_t kept_epochs = 2, kept_windows = 2;
constexpr int digit_bits = 12;  // of a length: most are below 4,096
constexpr std::size_t digits = std::size_t{1} << digit_bits;
constexpr std::uint64_t batches_key = 0x6261746368657321;  // differs from the keys of the order

std::int64_t total(const std::vector<std::int64_t>& values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

struct WindowPlan::Sample {
    std::int64_t sample = 0;
    const RowLengths* block = nullptr;  // in `lengths_`
    std::size_t row = 0;                // in the block

    std::int64_t length(std::size_t field) const { return (*block)[field][row]; }
};

WindowPlan::WindowPlan(WindowPlanOptions options, LengthSource& source)
    : options_{std::move(options)},
      source_{source},
      samples_{total(options_.block_samples)},
      weight_{total(options_.block_weights)} {
    HETSEQ_ASSERT(options_.batch_weight >= 1);
    HETSEQ_ASSERT(std::ssize(options_.block_samples) == options_.geometry.blocks());
    HETSEQ_ASSERT(options_.block_weights.size() == options_.block_samples.size());
    if (is_weighted())
        count_mean_epoch();
    batches_ = std::max<std::int64_t>(
        weight_ / options_.batch_weight + (weight_ % options_.batch_weight != 0 ? 1 : 0), 1);
}

GlobalBatch WindowPlan::batch(std::int64_t update) {
    const Epoch& of = epoch(update / batches_);
    const std::int64_t index = update % batches_;
    const std::int64_t group = group_of_batch(of, index);
    const Window& from = window(of, group);
    const auto place =
        static_cast<std::size_t>(index - of.groups[static_cast<std::size_t>(group)].first_batch);
    GlobalBatch batch;
    batch.update = update;
    batch.epoch = of.number;
    batch.items = from.batches[place];
    batch.end = batch.items->size();
    batch.is_full = index + 1 < batches_ || of.weight % of.batch_weight == 0;
    batch.window = group;
    batch.ends_window = place + 1 == from.batches.size();
    if (place == 0)
        read_ahead(of, group + 1);
    return batch;
}

const WindowPlan::Epoch& WindowPlan::epoch(std::int64_t number) {
    for (const Epoch& known : epochs_)
        if (known.number == number)
            return known;
    if (epochs_.size() == kept_epochs)
        epochs_.pop_back();
    epochs_.push_front(make_epoch(number));
    return epochs_.front();
}

// The samples of a set weigh what they do in the mean epoch: each slice of it comes as often.
void WindowPlan::count_mean_epoch() {
    __int128 samples = 0, weight = 0;
    for (const SampleSet& set : *options_.geometry.sets) {
        WeightedCount all;
        for (const BlockRange& part : block_ranges(set.ranges, options_.geometry.block_length)) {
            const WeightedCount own = count(part);
            all.samples += own.samples;
            all.weight += own.weight;
        }
        samples += static_cast<__int128>(all.samples) * set.samples_of_epoch / set.samples();
        weight += static_cast<__int128>(all.weight) * set.samples_of_epoch / set.samples();
    }
    samples_ = static_cast<std::int64_t>(samples);
    weight_ = static_cast<std::int64_t>(weight);
    lengths_.clear();
}

WindowPlan::WeightedCount WindowPlan::count(const BlockRange& part) {
    const std::int64_t length = options_.geometry.block_length;
    const std::int64_t first = part.block * length;
    const auto block = static_cast<std::size_t>(part.block);
    if (part.samples == SampleRange{first, std::min(first + length, options_.geometry.samples)})
        return {options_.block_samples[block], options_.block_weights[block]};
    WeightedCount found;
    for (std::int64_t i = part.samples.begin; i < part.samples.end; ++i) {
        const Sample sample = lengths_of(i);
        if (!is_left_out(sample)) {
            ++found.samples;
            found.weight += weight_of(sample);
        }
    }
    return found;
}

WindowPlan::Epoch WindowPlan::make_epoch(std::int64_t number) {
    Epoch made{number, {options_.geometry, options_.seed, number, options_.shuffle}};
    std::vector<WeightedCount> counts{{}};
    for (std::int64_t group = 0; group < made.order.groups(); ++group) {
        WeightedCount sum = counts.back();
        for (const BlockRange& part : made.order.group_parts(group)) {
            const WeightedCount own = count(part);
            sum.samples += own.samples;
            sum.weight += own.weight;
        }
        counts.push_back(sum);
    }
    lengths_.clear();
    settle_weights(made, counts);
    std::int64_t batch = 0;
    for (std::size_t group = 0; group < made.groups.size(); ++group) {
        const bool is_last = group + 1 == made.groups.size();
        const std::int64_t end =
            is_last ? batches_ : whole_batches(made, made.groups[group + 1].weight_before);
        made.groups[group].first_batch = batch;
        made.groups[group].batches = end - batch;
        if (end > batch)
            made.last_group = static_cast<std::int64_t>(group);
        batch = end;
    }
    return made;
}

void WindowPlan::settle_weights(Epoch& epoch, const std::vector<WeightedCount>& counts) const {
    const WeightedCount& all = counts.back();
    epoch.batch_weight = options_.batch_weight;
    const std::int64_t whole = all.weight / epoch.batch_weight;
    const bool has_rest = all.weight % epoch.batch_weight != 0;
    epoch.by_samples = std::max<std::int64_t>(whole + (has_rest ? 1 : 0), 1) != batches_;
    if (epoch.by_samples)
        epoch.batch_weight = std::max<std::int64_t>(all.samples / batches_, 1);
    const auto weight = [&](const WeightedCount& of) {
        return epoch.by_samples ? of.samples : of.weight;
    };
    epoch.weight = weight(all);
    for (std::size_t group = 0; group + 1 < counts.size(); ++group)
        epoch.groups.push_back({.weight_before = weight(counts[group])});
}

// Those that end before `weight` of the epoch, which is not all of it. Where samples are divided
// evenly, the last batch takes what the division leaves.
std::int64_t WindowPlan::whole_batches(const Epoch& epoch, std::int64_t weight) const {
    const bool has_rest = epoch.weight > epoch.batch_weight * batches_;
    return std::min(weight / epoch.batch_weight, has_rest ? batches_ - 1 : batches_);
}

std::int64_t WindowPlan::group_of_batch(const Epoch& epoch, std::int64_t batch) const {
    const auto behind = std::upper_bound(epoch.groups.begin(),
                                         epoch.groups.end(),
                                         batch,
                                         [](std::int64_t index, const Group& group) {
                                             return index < group.first_batch + group.batches;
                                         });
    return behind - epoch.groups.begin();
}

const WindowPlan::Window& WindowPlan::window(const Epoch& epoch, std::int64_t group) {
    for (const Window& known : windows_)
        if (known.epoch == epoch.number && known.group == group)
            return known;
    if (windows_.size() == kept_windows)
        windows_.pop_back();
    windows_.push_front(make_window(epoch, group));
    lengths_.clear();
    return windows_.front();
}

WindowPlan::Sample WindowPlan::sample_at(const Epoch& epoch, std::int64_t position) {
    return lengths_of(epoch.order(position));
}

WindowPlan::Sample WindowPlan::lengths_of(std::int64_t sample) {
    const std::int64_t block = sample / options_.geometry.block_length;
    auto& lengths = lengths_[block];
    if (!lengths)
        lengths = source_.lengths(block);
    return {
        sample, lengths.get(), static_cast<std::size_t>(sample % options_.geometry.block_length)};
}

bool WindowPlan::is_left_out(const Sample& sample) const {
    if (options_.max_length == 0)
        return false;
    for (std::size_t field = 0; field < sample.block->size(); ++field)
        if (sample.length(field) > options_.max_length)
            return true;
    return false;
}

std::int64_t WindowPlan::weight_of(const Sample& sample) const {
    return options_.counts_samples || !options_.units_field ? 1
                                                            : sample.length(*options_.units_field);
}

std::int64_t WindowPlan::border_at(const Epoch& epoch,
                                   std::int64_t weight,
                                   std::int64_t end,
                                   std::int64_t weight_before_end) {
    if (weight == 0)
        return 0;
    std::int64_t position = end;
    std::int64_t before = weight_before_end;
    while (position > 0) {
        const Sample sample = sample_at(epoch, position - 1);
        const std::int64_t own = epoch.by_samples ? 1 : weight_of(sample);
        const std::int64_t next = is_left_out(sample) ? 0 : own;
        if (before <= weight && next > 0)
            break;
        before -= next;
        --position;
    }
    return position;
}

// By digits, the lowest first.
void WindowPlan::sort_by_length(std::vector<Sample>& samples, std::size_t field) {
    std::int64_t longest = 0;
    for (const Sample& sample : samples)
        longest = std::max(longest, sample.length(field));
    std::vector<Sample> sorted(samples.size());
    for (int shift = 0; longest >> shift > 0; shift += digit_bits) {
        const auto digit = [=](const Sample& sample) {
            return static_cast<std::size_t>(sample.length(field) >> shift) % digits;
        };
        std::vector<std::size_t> begins(digits + 1, 0);  // in `sorted`, by digit
        for (const Sample& sample : samples)
            ++begins[digit(sample) + 1];
        std::partial_sum(begins.begin(), begins.end(), begins.begin());
        for (const Sample& sample : samples)
            sorted[begins[digit(sample)]++] = sample;
        samples.swap(sorted);
    }
}

std::vector<WindowPlan::Sample> WindowPlan::samples_between(const Epoch& epoch,
                                                            std::int64_t begin,
                                                            std::int64_t end) {
    std::vector<Sample> samples;
    samples.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t position = begin; position < end; ++position) {
        const Sample sample = sample_at(epoch, position);
        if (!is_left_out(sample))
            samples.push_back(sample);
    }
    const std::size_t fields = samples.empty() ? 0 : samples.front().block->size();
    for (std::size_t field = fields; field-- > 0;)
        if (field != options_.units_field)
            sort_by_length(samples, field);
    // Last, so that units come before all other lengths: batches are cut by them.
    if (options_.units_field)
        sort_by_length(samples, *options_.units_field);
    return samples;
}

std::shared_ptr<const BatchItems> WindowPlan::items_of(const std::vector<Sample>& samples,
                                                       std::int64_t begin,
                                                       std::int64_t end) const {
    auto items = std::make_shared<BatchItems>();
    const std::span chosen = std::span{samples}.subspan(static_cast<std::size_t>(begin),
                                                        static_cast<std::size_t>(end - begin));
    items->samples.reserve(chosen.size());
    items->units.reserve(chosen.size());
    for (const Sample& sample : chosen) {
        items->samples.push_back(sample.sample);
        items->units.push_back(options_.units_field ? sample.length(*options_.units_field) : 1);
    }
    items->lengths.resize(chosen.empty() ? 0 : chosen.front().block->size());
    for (std::size_t field = 0; field < items->lengths.size(); ++field) {
        items->lengths[field].reserve(chosen.size());
        for (const Sample& sample : chosen)
            items->lengths[field].push_back(static_cast<std::int32_t>(sample.length(field)));
    }
    return items;
}

// Each border lies where the weight up to it is nearest to an even share. Every batch has samples
// if there are at least as many samples as batches. That is so if no sample weighs more than a
// batch.
void WindowPlan::cut(const std::vector<Sample>& samples,
                     std::int64_t batches,
                     Window& window) const {
    std::int64_t weight = 0;
    for (const Sample& sample : samples)
        weight += weight_of(sample);
    const std::int64_t size = std::ssize(samples);
    std::int64_t begin = 0, end = 0;
    std::int64_t before = 0;  // weight of the samples before `end`
    for (std::int64_t i = 1; i <= batches; ++i) {
        const std::int64_t border = weight / batches * i + weight % batches * i / batches;
        const std::int64_t most = size - (batches - i);
        while (end < size) {
            const std::int64_t next = weight_of(samples[static_cast<std::size_t>(end)]);
            const bool is_nearer = 2 * before + next <= 2 * border;
            if (i < batches && end > begin && (end >= most || !is_nearer))
                break;
            before += next;
            ++end;
        }
        window.batches.push_back(items_of(samples, begin, end));
        begin = end;
    }
}

void WindowPlan::permute(const Epoch& epoch, Window& window) const {
    if (window.batches.empty() || options_.shuffle == Shuffle::no)
        return;
    const std::uint64_t key = mix_keys(mix_keys(options_.seed, batches_key),
                                       mix_keys(static_cast<std::uint64_t>(epoch.number),
                                                static_cast<std::uint64_t>(window.group)));
    const KeyedPermutation order{std::ssize(window.batches), key};
    std::vector<std::shared_ptr<const BatchItems>> permuted;
    for (std::int64_t i = 0; i < order.size(); ++i)
        permuted.push_back(window.batches[static_cast<std::size_t>(order(i))]);
    window.batches = std::move(permuted);
}

WindowPlan::Window WindowPlan::make_window(const Epoch& epoch, std::int64_t group) {
    const Group& own = epoch.groups[static_cast<std::size_t>(group)];
    read_ahead(epoch, group);
    const std::int64_t full = epoch.batch_weight;
    const std::int64_t begin =
        border_at(epoch, own.first_batch * full, epoch.order.group_begin(group), own.weight_before);
    Window made{epoch.number, group, {}};
    if (group < epoch.last_group) {
        const std::int64_t end =
            border_at(epoch,
                      (own.first_batch + own.batches) * full,
                      epoch.order.group_end(group),
                      epoch.groups[static_cast<std::size_t>(group + 1)].weight_before);
        cut(samples_between(epoch, begin, end), own.batches, made);
        permute(epoch, made);
        return made;
    }
    const std::int64_t whole = std::min(epoch.weight / full, batches_) - own.first_batch;
    std::int64_t end = epoch.order.size();
    if (whole < own.batches)
        end = border_at(epoch, epoch.weight / full * full, end, epoch.weight);
    if (whole > 0)
        cut(samples_between(epoch, begin, end), whole, made);
    permute(epoch, made);
    if (whole < own.batches)
        cut(samples_between(epoch, end, epoch.order.size()), own.batches - whole, made);
    return made;
}

void WindowPlan::read_ahead(const Epoch& epoch, std::int64_t group) {
    if (group < epoch.order.groups())
        for (const std::int64_t block : epoch.order.group_blocks(group))
            source_.read_ahead(block);
}

}  // namespace hetseq
