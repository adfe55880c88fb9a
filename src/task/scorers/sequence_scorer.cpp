#include "sequence_scorer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "hetseq/model/model.hpp"

namespace hetseq {

namespace {

template <class T>
std::vector<T> values_of(const at::Tensor& tensor) {
    const at::Tensor values = tensor.to(at::kCPU, c10::CppTypeToScalarType<T>::value).contiguous();
    const T* begin = values.const_data_ptr<T>();
    return {begin, begin + values.numel()};
}

double ratio(double above, double below) {
    return below == 0 ? 0 : above / below;
}

/// How often each label was expected and predicted, and both at once.
struct LabelCounts {
    double both = 0;
    double expected = 0;
    double predicted = 0;

    double f1() const { return ratio(2 * both, expected + predicted); }
    bool occurs() const { return expected + predicted > 0; }
};

/// The sums are, for each label, LabelCounts.
class LabelScorer final : public CorpusScorer {
public:
    explicit LabelScorer(std::size_t labels) : labels_{labels} {}

    std::size_t sums() const override { return 3 * labels_; }

    void add(const MicroBatch& batch,
             const ForwardResult& result,
             std::span<double> sums) override {
        const auto expected = values_of<std::int64_t>(batch.tensors.at("labels"));
        const auto predicted = values_of<std::int64_t>(result.output);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const auto wanted = static_cast<std::size_t>(expected[i]);
            const auto given = static_cast<std::size_t>(predicted[i]);
            sums[3 * wanted] += wanted == given ? 1 : 0;
            sums[3 * wanted + 1] += 1;
            sums[3 * given + 2] += 1;
        }
    }

    std::vector<double> values(std::span<const double> sums,
                               std::span<const std::string>) const override {
        std::vector<LabelCounts> counts;
        for (std::size_t label = 0; label < labels_; ++label)
            counts.push_back({sums[3 * label], sums[3 * label + 1], sums[3 * label + 2]});
        std::vector<double> values;
        if (labels_ == 2)
            values.push_back(counts[1].f1());
        values.push_back(macro_f1(counts));
        values.push_back(matthews(counts));
        return values;
    }

private:
    static double macro_f1(const std::vector<LabelCounts>& counts) {
        double sum = 0, labels = 0;
        for (const LabelCounts& label : counts) {
            sum += label.f1();
            labels += label.occurs() ? 1 : 0;
        }
        return ratio(sum, labels);
    }

    // Gorodkin 2004, equation 8, from the counts alone.
    static double matthews(const std::vector<LabelCounts>& counts) {
        double samples = 0, correct = 0, products = 0, expected = 0, predicted = 0;
        for (const LabelCounts& label : counts) {
            samples += label.expected;
            correct += label.both;
            products += label.expected * label.predicted;
            expected += label.expected * label.expected;
            predicted += label.predicted * label.predicted;
        }
        const double square = samples * samples;
        return ratio(correct * samples - products,
                     std::sqrt((square - expected) * (square - predicted)));
    }

    std::size_t labels_;
};

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
    const auto mean = [](const std::vector<double>& values) {
        return std::accumulate(values.begin(), values.end(), 0.0) /
               static_cast<double>(values.size());
    };
    const double x_mean = mean(x), y_mean = mean(y);
    double xx = 0, yy = 0, xy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        yy += (y[i] - y_mean) * (y[i] - y_mean);
        xy += (x[i] - x_mean) * (y[i] - y_mean);
    }
    return ratio(xy, std::sqrt(xx * yy));
}

// From 1; equal values have the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return values[a] < values[b];
    });
    std::vector<double> ranks(values.size());
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin + 1;
        while (end < order.size() && values[order[end]] == values[order[begin]])
            ++end;
        for (std::size_t i = begin; i < end; ++i)
            ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
        begin = end;
    }
    return ranks;
}

// Those that the ranks kept.
std::vector<std::pair<double, double>> pairs_of(std::span<const std::string> kept) {
    std::vector<std::pair<double, double>> pairs;
    for (const std::string& of_rank : kept)
        for (std::size_t place = 0; place < of_rank.size(); place += 2 * sizeof(double)) {
            double pair[2];
            std::memcpy(pair, of_rank.data() + place, sizeof(pair));
            pairs.emplace_back(pair[0], pair[1]);
        }
    return pairs;
}

/// Keeps pairs: what was expected, what was predicted.
class NumberScorer final : public CorpusScorer {
public:
    std::size_t sums() const override { return 0; }

    void add(const MicroBatch& batch, const ForwardResult& result, std::span<double>) override {
        const auto expected = values_of<double>(batch.tensors.at("labels"));
        const auto predicted = values_of<double>(result.output);
        for (std::size_t i = 0; i < expected.size(); ++i)
            kept_.insert(kept_.end(), {expected[i], predicted[i]});
    }

    std::int64_t kept_bytes() const override {
        return static_cast<std::int64_t>(kept_.size() * sizeof(double));
    }

    std::string kept() override {
        std::string bytes(kept_.size() * sizeof(double), '\0');
        std::memcpy(bytes.data(), kept_.data(), bytes.size());
        return bytes;
    }

    // The pairs are sorted, so that their order does not depend on the ranks.
    std::vector<double> values(std::span<const double>,
                               std::span<const std::string> kept) const override {
        std::vector<std::pair<double, double>> pairs;
        for (const auto& [expected, predicted] : pairs_of(kept)) {
            if (!std::isfinite(predicted))
                return {predicted, predicted};
            pairs.emplace_back(expected, predicted);
        }
        std::sort(pairs.begin(), pairs.end());
        std::vector<double> expected, predicted;
        for (const auto& [x, y] : pairs) {
            expected.push_back(x);
            predicted.push_back(y);
        }
        return {correlation(expected, predicted),
                correlation(ranks_of(expected), ranks_of(predicted))};
    }

private:
    std::vector<double> kept_;
};

}  // namespace

std::vector<std::string> label_score_names(std::size_t labels) {
    return labels == 2 ? std::vector<std::string>{"f1", "macro_f1", "matthews"}
                       : std::vector<std::string>{"macro_f1", "matthews"};
}

std::unique_ptr<CorpusScorer> make_label_scorer(std::size_t labels) {
    return std::make_unique<LabelScorer>(labels);
}

std::vector<std::string> number_score_names() {
    return {"pearson", "spearman"};
}

std::unique_ptr<CorpusScorer> make_number_scorer() {
    return std::make_unique<NumberScorer>();
}

}  // namespace hetseq
