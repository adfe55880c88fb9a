#include "hetseq/train/record/recorder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "hetseq/util/json.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/terminal.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/state/run_listener.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/record/run_history.hpp"

#include "scalars.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using Json = nlohmann::ordered_json;

double total(const std::vector<double>& values) {
    double sum = 0;
    for (double value : values)
        sum += value;
    return sum;
}

// Null where nothing had weight, so that TensorBoard draws no curve.
Json value_json(double value, bool has_weight) {
    return has_weight ? Json(value) : Json(nullptr);
}

// Not a number where none is known.
double sum_of_known(std::vector<double> values) {
    std::erase_if(values, [](double value) { return std::isnan(value); });
    return values.empty() ? std::numeric_limits<double>::quiet_NaN() : total(values);
}

std::string known_text(double value) {
    return std::isnan(value) ? "none" : format_number(value);
}

// "2.5 (mlm 2.1, nsp 0.4)"
std::string loss_text(double loss,
                      const std::vector<std::string>& names,
                      const std::vector<double>& losses) {
    std::string text = known_text(loss);
    for (std::size_t j = 0; losses.size() > 1 && j < losses.size(); ++j)
        text += (j > 0 ? ", " : " (") + names[j] + " " + known_text(losses[j]);
    return text + (losses.size() > 1 ? ")" : "");
}

void add_step(Json& line, const UpdateRecord& record) {
    line["lr"] = record.lr;
    line["grad_norm"] = record.grad_norm;
    if (record.loss_scale) {
        line["loss_scale"] = record.loss_scale->value;
        line["overflows"] = record.loss_scale->overflows;
    }
}

// Computing is told of the updates before: the ranks know each other's.
void add_rank_times(Json& line, const ByRankTime<std::vector<double>>& times) {
    for (const RankTimeText& text : rank_time_texts) {
        if (text.time == RankTime::compute || times[text.time].empty())
            continue;
        Json& by_rank = line[rank_time_key(text)] = Json::array();
        for (const double ms : times[text.time])
            by_rank.push_back(value_json(ms, !std::isnan(ms)));
    }
}

}  // namespace

Recorder::Recorder(const RunFolder* folder, int rank, Options options)
    : folder_{folder},
      active_{rank == 0},
      options_{std::move(options)},
      bar_{options_.total_updates, active_ ? columns_of_terminal() : 0, options_.unit} {
    window_ = options_.window;
    window_.losses.resize(options_.loss_terms.size());
    if (active_ && folder != nullptr) {
        metrics_.emplace(folder->metrics());
        events_.emplace(folder->tensorboard(), options_.first_update);
    }
}

bool Recorder::is_due(std::int64_t update) const noexcept {
    return update % options_.log_interval == 0 || update == options_.total_updates;
}

void Recorder::train(const UpdateRecord& record) {
    if (!active_)
        return;
    ++window_.updates;
    window_.samples += record.samples;
    window_.units += record.units;
    ++timed_updates_;
    timed_samples_ += record.samples;
    timed_units_ += record.units;
    ms_ += record.step_ms;
    const bool finite = record.is_applied && std::isfinite(total(record.losses));
    window_.finite_updates += finite ? 1 : 0;
    for (std::size_t j = 0; finite && j < window_.losses.size(); ++j)
        window_.losses[j] += record.losses[j];
    if (finite && !record.weightless.empty()) {
        window_.weightless.resize(window_.losses.size());
        for (const std::size_t term : record.weightless)
            ++window_.weightless[term];
    }
    count_compute(record);
    if (is_heard(ToldEvent::update))
        tell_update(record);
    bar_.advance(record.update, total(record.losses), record.units, record.step_ms);
    if (is_due(record.update))
        log_interval(record);
}

// The ranks' times are those of the update before. There are none if the run was just started, and
// they do not count if a rank computed something twice.
void Recorder::count_compute(const UpdateRecord& record) {
    bool is_whole = before_.allocation.size() == record.compute_ms.size();
    for (std::size_t r = 0; is_whole && r < record.compute_ms.size(); ++r)
        is_whole = before_.allocation[r] == 0 || record.compute_ms[r] > 0;
    if (is_whole) {
        rank_compute_ms_.resize(record.compute_ms.size());
        for (std::size_t r = 0; r < record.compute_ms.size(); ++r)
            rank_compute_ms_[r] += record.compute_ms[r];
        computed_in_ms_ += before_.step_ms;
        ++computed_updates_;
    }
    before_ = {record.step_ms, record.allocation};
}

// By term, over the window's finite updates whose batch has weight in it; not a number where there
// are none.
std::vector<double> Recorder::mean_losses() const {
    std::vector<double> losses = window_.losses;
    for (std::size_t j = 0; j < losses.size(); ++j)
        losses[j] /= static_cast<double>(window_.finite_updates -
                                         (window_.weightless.empty() ? 0 : window_.weightless[j]));
    return losses;
}

// One line for the updates since the last one. Rates are sums divided by their time.
void Recorder::log_interval(const UpdateRecord& last) {
    const auto updates = static_cast<double>(timed_updates_);
    const std::vector<double> losses = mean_losses();
    const double loss = sum_of_known(losses);
    const double seconds = ms_ / 1000;
    const double eta =
        static_cast<double>(options_.total_updates - last.update) * seconds / updates;
    log::info("epoch " + std::to_string(last.epoch) + "  update " + std::to_string(last.update) +
              "/" + std::to_string(options_.total_updates) + "  loss " +
              (window_.finite_updates > 0 ? loss_text(loss, options_.loss_terms, losses) : "nan") +
              "  lr " + format_number(last.lr) + "  grad " + format_number(last.grad_norm, 3) +
              "  " + format_number(static_cast<double>(timed_units_) / seconds) + " " +
              options_.unit + "/s  step " + format_number(ms_ / updates, 3) + " ms  " +
              slowest_rank() + "ETA " + format_duration(eta));

    const auto mean_json = [&](double mean) {
        return value_json(mean, !std::isnan(mean) || window_.finite_updates == 0);
    };
    Json line{{"kind", "train"},
              {"update", last.update},
              {"epoch", last.epoch},
              {"loss", mean_json(loss)}};
    for (std::size_t j = 0; j < losses.size(); ++j)
        line[options_.loss_terms[j]] = mean_json(losses[j]);
    add_step(line, last);
    line["samples"] = window_.samples;
    line["units"] = window_.units;
    line["samples_per_second"] = static_cast<double>(timed_samples_) / seconds;
    line["units_per_second"] = static_cast<double>(timed_units_) / seconds;
    line["step_ms"] = ms_ / updates;
    line["rank_compute_ms"] = Json::array();
    for (const double ms : rank_compute_ms_)
        line["rank_compute_ms"].push_back(ms / computed_updates_);
    add_rank_times(line, last.rank_times);
    line["allocation"] = last.allocation;
    write(last.update, json_text(line), scalars_of(line));

    window_ = {};
    window_.losses.resize(options_.loss_terms.size());
    timed_updates_ = timed_samples_ = timed_units_ = 0;
    ms_ = 0;
    rank_compute_ms_.clear();
    computed_in_ms_ = computed_updates_ = 0;
}

// Even the rank that computes longest spends some time on other things. No cut avoids this waiting.
std::string Recorder::slowest_rank() const {
    const auto slowest = std::max_element(rank_compute_ms_.begin(), rank_compute_ms_.end());
    if (rank_compute_ms_.size() < 2)
        return "";
    return "slowest rank " + std::to_string(slowest - rank_compute_ms_.begin()) + " waits " +
           percent_text(std::max(0.0, 1 - *slowest / computed_in_ms_), 2) + "  ";
}

void Recorder::valid(std::int64_t update,
                     std::int64_t epoch,
                     const Evaluation& evaluation,
                     bool best) {
    if (!active_)
        return;
    Json line{{"kind", "valid"}, {"update", update}, {"epoch", epoch}, {"loss", evaluation.loss()}};
    std::string text = "valid  epoch " + std::to_string(epoch) + "  update " +
                       std::to_string(update) + "  loss " + format_number(evaluation.loss(), 5);
    for (const Evaluation::Value& loss : evaluation.losses)
        line[loss.name] = value_json(loss.value, loss.has_weight);
    for (const Evaluation::Value& metric : evaluation.metrics) {
        line[metric.name] = value_json(metric.value, metric.has_weight);
        text += "  " + metric.name + " " + value_text(metric);
    }
    line["samples"] = evaluation.samples;
    line["seconds"] = evaluation.seconds;
    line["best"] = best;
    line["best_by"] = to_string(options_.best_by);
    const std::string& name = options_.best_by.name;
    log::info(text + (best ? "  (best" + (name == "loss" ? "" : " " + name) + ")" : ""));
    write(update, json_text(line), scalars_of(line));
    if (is_heard(ToldEvent::validation))
        options_.listener->tell(ToldEvent::validation, json_text(line));
}

void Recorder::saved(std::int64_t update, const std::string& path) {
    if (is_heard(ToldEvent::checkpoint))
        options_.listener->tell(ToldEvent::checkpoint,
                                json_text(Json{{"update", update}, {"path", path}}));
}

void Recorder::goodput(std::int64_t update, const Goodput& goodput) {
    const double all_s = goodput.seconds();
    if (!events_ || folder_->has_lost_lease() || all_s <= 0)
        return;
    std::vector<Scalar> scalars{{"goodput/share", goodput.share()}};
    for (const GoodputPart& part : goodput_parts)
        if (part.seconds != &Goodput::updating_s)
            scalars.push_back({"goodput/" + std::string(part.key), goodput.*part.seconds / all_s});
    events_->write(update, scalars);
}

void Recorder::require_listener() const {
    if (active_ && options_.listener != nullptr)
        options_.listener->require_no_failure();
}

bool Recorder::is_heard(ToldEvent event) const {
    return active_ && options_.listener != nullptr && options_.listener->hears(event);
}

// What a line of metrics.jsonl has, of one update.
void Recorder::tell_update(const UpdateRecord& record) {
    const double seconds = record.step_ms / 1000;
    Json info{{"update", record.update}, {"epoch", record.epoch}, {"loss", total(record.losses)}};
    for (std::size_t j = 0; j < record.losses.size(); ++j)
        info["losses"][options_.loss_terms[j]] = record.losses[j];
    add_step(info, record);
    info["samples"] = record.samples;
    info["units"] = record.units;
    info["step_ms"] = record.step_ms;
    info["samples_per_second"] = static_cast<double>(record.samples) / seconds;
    info["units_per_second"] = static_cast<double>(record.units) / seconds;
    info["allocation"] = record.allocation;
    options_.listener->tell(ToldEvent::update, json_text(info));
}

void Recorder::event(std::int64_t update, const std::string& message, log::Level level) {
    if (!active_)
        return;
    log::once(level, "update " + std::to_string(update) + ": " + message);
    const Json line{{"kind", "event"}, {"update", update}, {"message", message}};
    write(update, json_text(line), {});
}

void Recorder::write(std::int64_t update,
                     const std::string& line,
                     const std::vector<Scalar>& scalars) {
    if (folder_ != nullptr && folder_->has_lost_lease())
        return;
    if (metrics_)
        metrics_->write(line);
    if (events_)
        events_->write(update, scalars);
}

void Recorder::finish() {
    bar_.erase();
    if (metrics_ && !folder_->has_lost_lease())
        metrics_->finish();
    if (events_)
        events_->finish();
}

}  // namespace hetseq
