#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "hetseq/model/decoding/step_decoder.hpp"

namespace hetseq::test {

using Tokens = std::vector<std::int32_t>;

/// A language of few tokens (0 unknown, 1 begin, 2 end): log-probabilities that are a function of
/// the sentence and of the tokens before.
struct TableLanguage {
    std::int32_t size = 5;
    std::uint64_t seed = 1;

    std::vector<double> log_probabilities(std::int32_t sentence, const Tokens& before) const {
        std::uint64_t state = seed * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(sentence);
        for (const std::int32_t token : before)
            state = mixed(state + static_cast<std::uint64_t>(token) + 1);
        std::vector<double> scores;
        for (std::int32_t token = 0; token < size; ++token)
            scores.push_back(
                3 *
                static_cast<double>(mixed(state + 77u * static_cast<std::uint64_t>(token)) >> 11) *
                0x1p-53);
        double sum = 0;
        for (const double score : scores)
            sum += std::exp(score);
        for (double& score : scores)
            score -= std::log(sum);
        return scores;
    }

private:
    static std::uint64_t mixed(std::uint64_t z) {
        z += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
};

/// Decodes a table's language.
class TableDecoder final : public StepDecoder {
public:
    TableDecoder(const TableLanguage& language, std::int32_t sentences) : language_{language} {
        for (std::int32_t i = 0; i < sentences; ++i)
            rows_.push_back({i, {}});
    }

    void step(std::span<const DecoderRow> rows,
              const CandidateRule& rule,
              Candidates& candidates) override {
        std::vector<Row> next;
        candidates = {};
        for (const DecoderRow& row : rows) {
            next.push_back(rows_[static_cast<std::size_t>(row.parent)]);
            next.back().tokens.push_back(row.token);
            score(next.back(), rule, candidates);
        }
        rows_ = std::move(next);
        steps.push_back(rows.size());
    }

    std::vector<std::size_t> steps;  // rows of each step

private:
    struct Row {
        std::int32_t sentence;
        Tokens tokens;  // the begin symbol first
    };

    void score(const Row& row, const CandidateRule& rule, Candidates& candidates) const {
        std::vector<double> scores = language_.log_probabilities(row.sentence, row.tokens);
        candidates.end.push_back(scores[2]);
        if (!rule.may_end)
            scores[2] = -INFINITY;
        scores[0] -= rule.unknown_penalty;
        std::vector<std::int32_t> order(scores.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
            return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
        });
        for (std::int64_t i = 0; i < rule.count; ++i) {
            const bool is_there = i < static_cast<std::int64_t>(order.size());
            const std::int32_t token = is_there ? order[static_cast<std::size_t>(i)] : -1;
            candidates.tokens.push_back(token);
            candidates.log_probabilities.push_back(
                is_there ? scores[static_cast<std::size_t>(token)] : -INFINITY);
        }
    }

    TableLanguage language_;
    std::vector<Row> rows_;
};

}  // namespace hetseq::test
