#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <tuple>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"
#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

namespace hetseq {

/// Small random chains and devices: tied state, memory that is short, links fast and slow. Numbers
/// are quarters, so that sums are exact and many cuts tie.
class RandomChains {
public:
    explicit RandomChains(unsigned seed) : random_{seed} {}

    int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    ChainProblem problem(int most_devices, int most_units) {
        ChainProblem problem;
        const auto units = static_cast<std::size_t>(draw(1, most_units));
        const int likeness = draw(1, 8);  // of units; 1: all take the same time
        const int memory_mb = draw(30, 160);
        for (int left = draw(1, most_devices); left > 0;) {
            const int count = draw(1, left);
            left -= count;
            const double speed = 0.25 * draw(1, 8);
            ChainDevices devices{.count = static_cast<std::size_t>(count),
                                 .forward_ms = {},
                                 .backward_ms = {},
                                 .memory_mb = 0.25 * draw(2 * memory_mb, 6 * memory_mb),
                                 .process_mb = draw(0, 8) + 0.0};
            for (std::size_t u = 0; u < units; ++u) {
                devices.forward_ms.push_back(speed * draw(1, likeness));
                devices.backward_ms.push_back(speed * draw(0, 2 * likeness));
            }
            devices.message_ms_per_mb = 0.25 * std::max(0, draw(-4, 4));
            problem.devices.push_back(devices);
        }
        add_links(problem);
        add_sizes(problem, units);
        add_hosts(problem);
        problem.micro_batches = static_cast<std::size_t>(draw(1, 3) == 1 ? 1 : draw(2, 12));
        return problem;
    }

private:
    void add_links(ChainProblem& problem) {
        const double slowness = draw(0, 2);
        problem.links.resize(problem.devices.size());
        for (std::vector<ChainLink>& links : problem.links)
            for (std::size_t to = 0; to < problem.devices.size(); ++to)
                links.push_back({0.25 * draw(0, 4), slowness * draw(0, 4)});
    }

    void add_sizes(ChainProblem& problem, std::size_t units) {
        const auto frozen = static_cast<std::size_t>(draw(0, 3) == 0 ? draw(0, 3) : 0);
        std::vector<double> own_mb;
        for (std::size_t u = 0; u < units; ++u) {
            problem.activations_mb.push_back(draw(0, 4));
            problem.gradients_mb.push_back(u < frozen ? 0 : 0.5 * draw(1, 8));
            problem.activations_mb_kept.push_back(draw(0, 8));
            problem.workspace_mb.push_back(draw(0, 6));
            own_mb.push_back(draw(0, 20));
        }
        const double tied_mb = draw(0, 1) == 0 ? draw(5, 30) : 0;  // of the first and last unit
        if (tied_mb > 0 && units > 1)
            problem.tied = {{{0, units - 1}, tied_mb, {0.25 * draw(0, 4), 0.25 * draw(0, 4)}}};
        problem.state_mb = [=](std::size_t begin, std::size_t end, std::size_t device_class) {
            double mb = begin == 0 || end == units ? tied_mb : 0;
            for (std::size_t u = begin; u < end; ++u)
                mb += own_mb[u];
            return mb + 2 * static_cast<double>(device_class);
        };
    }

    // Some classes are on one host, alone or together.
    void add_hosts(ChainProblem& problem) {
        if (draw(0, 1) == 0)
            for (ChainDevices& devices : problem.devices)
                if (const int host = draw(0, 2); host > 0)
                    devices.host = static_cast<std::size_t>(host);
    }

    std::mt19937 random_;
};

/// Tries all cuts of a chain on all choices of devices.
class AllCuts {
public:
    struct Cut {
        double score_ms = 0;
        std::vector<ChainStage> stages;
    };

    explicit AllCuts(const ChainProblem& problem) : problem_{problem} {
        for (const ChainDevices& devices : problem.devices)
            left_.push_back(devices.count);
        extend(0);
        std::sort(fitting.begin(), fitting.end(), comes_before);
    }

    std::vector<Cut> fitting;         // in order
    std::vector<ChainStage> nearest;  // the largest overshoot of memory is the least
    double nearest_overshoot_mb = 0;

    /// The time of an update, simulated [ms].
    double simulated_ms(const std::vector<ChainStage>& stages) const {
        std::vector<PipelineStage> simulated;
        std::vector<PipelineLink> links;
        const std::size_t micro_batches = problem_.micro_batches;
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const ChainDevices& devices = problem_.devices[stages[s].device_class];
            simulated.push_back({std::vector(micro_batches, forward_ms(stages[s])),
                                 std::vector(micro_batches, backward_ms(stages[s])),
                                 stages.size() - s,
                                 devices.host});
            if (s > 0)
                links.push_back({there_ms(stages[s - 1], stages[s]),
                                 back_ms(stages[s - 1], stages[s]),
                                 problem_.gradients_mb[stages[s].begin - 1] > 0,
                                 card_part(stages[s - 1].device_class, stages[s].device_class),
                                 card_part(stages[s].device_class, stages[s - 1].device_class)});
        }
        const SimulatedPipeline result = simulate_pipeline(simulated, links);
        return std::max(result.makespan_ms, tied_end_ms(stages, result));
    }

private:
    static bool comes_before(const Cut& a, const Cut& b) {
        const std::size_t a_devices = a.stages.size(), b_devices = b.stages.size();
        return std::tie(a.score_ms, a_devices, a.stages) <
               std::tie(b.score_ms, b_devices, b.stages);
    }

    // Two stages hold a copy of the only tied parameters, of the first and the last unit, and send
    // each other what they have.
    double tied_end_ms(const std::vector<ChainStage>& stages,
                       const SimulatedPipeline& result) const {
        if (stages.size() == 1 || problem_.tied.empty())
            return 0;
        const std::size_t first = stages.front().device_class, last = stages.back().device_class;
        const auto arrives_ms = [&](const ChainLink& link, std::size_t unit, double end_ms) {
            const TiedUnits& tied = problem_.tied.front();
            const double part = tied.filled[unit] < 0.75 ? tied.filled[unit] : 1;
            const double mb = part * tied.gradients_mb;
            return end_ms + link.latency_ms + mb * link.ms_per_mb;
        };
        return std::max(arrives_ms(problem_.links[first][last], 0, result.stages.front().end_ms),
                        arrives_ms(problem_.links[last][first], 1, result.stages.back().end_ms));
    }

    void extend(std::size_t begin) {
        if (begin == problem_.units())
            return judge();
        for (std::size_t c = 0; c < left_.size(); ++c) {
            if (left_[c] == 0)
                continue;
            --left_[c];
            for (std::size_t end = begin + 1; end <= problem_.units(); ++end) {
                stages_.push_back({c, begin, end});
                extend(end);
                stages_.pop_back();
            }
            ++left_[c];
        }
    }

    void judge() {
        double period_ms = 0, latency_ms = 0, overshoot_mb = 0;
        for (std::size_t s = 0; s < stages_.size(); ++s) {
            const ChainDevices& devices = problem_.devices[stages_[s].device_class];
            const double stage_ms = forward_ms(stages_[s]) + backward_ms(stages_[s]);
            const double there = s > 0 ? there_ms(stages_[s - 1], stages_[s]) : 0;
            const double back = s > 0 ? back_ms(stages_[s - 1], stages_[s]) : 0;
            period_ms = std::max({period_ms, stage_ms, there, back, card_ms(s)});
            latency_ms += stage_ms + there + back;
            overshoot_mb = std::max(overshoot_mb, needed_mb(s) - devices.memory_mb);
        }
        const auto devices = stages_.size(), nearest_devices = nearest.size();
        if (nearest.empty() || std::tie(overshoot_mb, devices, stages_) <
                                   std::tie(nearest_overshoot_mb, nearest_devices, nearest)) {
            nearest = stages_;
            nearest_overshoot_mb = overshoot_mb;
        }
        if (overshoot_mb <= 0)
            fitting.push_back(
                {static_cast<double>(problem_.micro_batches - 1) * period_ms + latency_ms,
                 stages_});
    }

    double needed_mb(std::size_t s) const {
        const ChainStage& stage = stages_[s];
        const auto in_flight = static_cast<double>(stages_.size() - s);
        double mb = problem_.devices[stage.device_class].process_mb +
                    problem_.state_mb(stage.begin, stage.end, stage.device_class) +
                    in_flight * sum(problem_.activations_mb_kept, stage) +
                    *std::max_element(&problem_.workspace_mb[stage.begin],
                                      &problem_.workspace_mb[stage.end - 1] + 1);
        if (s > 0)
            mb += in_flight * problem_.activations_mb[stage.begin - 1];
        if (s + 1 < stages_.size())
            mb += problem_.activations_mb[stage.end - 1];
        return mb;
    }

    // With what messages in front and behind take of it.
    double forward_ms(const ChainStage& stage) const {
        return with_messages_ms(stage, &ChainDevices::forward_ms, problem_.activations_mb);
    }
    double backward_ms(const ChainStage& stage) const {
        return with_messages_ms(stage, &ChainDevices::backward_ms, problem_.gradients_mb);
    }
    double with_messages_ms(const ChainStage& stage,
                            std::vector<double> ChainDevices::*times,
                            const std::vector<double>& mb) const {
        const ChainDevices& devices = problem_.devices[stage.device_class];
        double moved_mb = 0;
        if (stage.begin > 0)
            moved_mb += mb[stage.begin - 1];
        if (stage.end < problem_.units())
            moved_mb += mb[stage.end - 1];
        return sum(devices.*times, stage) + moved_mb * devices.message_ms_per_mb;
    }

    double there_ms(const ChainStage& front, const ChainStage& behind) const {
        const ChainLink& link = problem_.links[front.device_class][behind.device_class];
        return link.latency_ms + link.ms_per_mb * problem_.activations_mb[front.end - 1];
    }
    double back_ms(const ChainStage& front, const ChainStage& behind) const {
        const ChainLink& link = problem_.links[behind.device_class][front.device_class];
        const double mb = problem_.gradients_mb[front.end - 1];
        return mb > 0 ? link.latency_ms + link.ms_per_mb * mb : 0;
    }

    bool is_one_host(std::size_t a, std::size_t b) const {
        return problem_.devices[a].host && problem_.devices[a].host == problem_.devices[b].host;
    }
    // Of a message's time, what it takes of the card of a device of class `own`, whose fastest link
    // tells how fast the card is.
    double card_part(std::size_t own, std::size_t other) const {
        const auto ms_per_mb = [&](std::size_t to) {
            return std::max(problem_.links[own][to].ms_per_mb, problem_.links[to][own].ms_per_mb);
        };
        double fastest = ms_per_mb(other);
        for (std::size_t to = 0; to < problem_.devices.size(); ++to)
            if (!is_one_host(own, to) && (to != own || problem_.devices[own].count > 1))
                fastest = std::min(fastest, ms_per_mb(to));
        return ms_per_mb(other) > 0 ? fastest / ms_per_mb(other) : 1;
    }
    // The messages of a stage, out or in: what takes longer.
    double card_ms(std::size_t s) const {
        double out = 0, in = 0;
        const std::size_t own = stages_[s].device_class;
        if (s > 0 && !is_one_host(own, stages_[s - 1].device_class)) {
            const double part = card_part(own, stages_[s - 1].device_class);
            out += rounded(part * back_ms(stages_[s - 1], stages_[s]));
            in += rounded(part * there_ms(stages_[s - 1], stages_[s]));
        }
        if (s + 1 < stages_.size() && !is_one_host(own, stages_[s + 1].device_class)) {
            const double part = card_part(own, stages_[s + 1].device_class);
            out += rounded(part * there_ms(stages_[s], stages_[s + 1]));
            in += rounded(part * back_ms(stages_[s], stages_[s + 1]));
        }
        return std::max(out, in);
    }
    static double rounded(double ms) { return std::ldexp(std::round(std::ldexp(ms, 20)), -20); }

    static double sum(const std::vector<double>& values, const ChainStage& stage) {
        double sum = 0;
        for (std::size_t u = stage.begin; u < stage.end; ++u)
            sum += values[u];
        return sum;
    }

    const ChainProblem& problem_;
    std::vector<std::size_t> left_;  // devices, by class
    std::vector<ChainStage> stages_;
};

}  // namespace hetseq
