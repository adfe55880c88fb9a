#include "hetseq/model/decoding/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

/// A hypothesis that is followed.
struct Live {
    double log_probability = 0;
    std::int32_t node = -1;  // its newest token's; -1: it has none
};

/// A continuation of a live hypothesis.
struct Continuation {
    double log_probability = 0;
    std::int32_t live = 0;
    std::int32_t token = 0;
    std::int32_t rank = 0;  // among its row's candidates

    /// Equal ones in a fixed order.
    bool operator<(const Continuation& other) const {
        return std::tuple{-log_probability, live, rank} <
               std::tuple{-other.log_probability, other.live, other.rank};
    }
};

/// The search of one sentence.
class SentenceSearch {
public:
    SentenceSearch(const SearchSpace& space, const BeamOptions& options, std::int64_t source_length)
        : space_{space},
          options_{options},
          max_length_{static_cast<std::int64_t>(
              std::min(options.length_factor * static_cast<double>(source_length) +
                           static_cast<double>(options.length_constant),
                       static_cast<double>(space.max_positions - 1)))} {}

    std::int64_t rows() const { return static_cast<std::int64_t>(live_.size()); }
    bool done() const { return live_.empty(); }

    /// Goes on with the candidates of its rows, the first of which is `first_row`. Appends its next
    /// rows.
    void advance(const Candidates& candidates,
                 std::int64_t first_row,
                 std::vector<DecoderRow>& next_rows);

    std::vector<Hypothesis> take_hypotheses();

private:
    void collect(const Candidates& candidates, std::int64_t first_row);
    void collect_ends(const Candidates& candidates, std::int64_t first_row);
    void finish(const Continuation& ended);

    const SearchSpace& space_;
    const BeamOptions& options_;
    std::int64_t max_length_;  // in tokens, end symbol excluded
    std::int64_t length_ = 0;  // of the live hypotheses
    struct Node {
        std::int32_t parent;
        std::int32_t token;
    };
    std::vector<Node> nodes_;  // the tokens of all hypotheses, each with the one before it
    std::vector<Live> live_{Live{}};
    std::vector<Hypothesis> finished_;
    std::vector<Continuation> continuations_;
};

void SentenceSearch::collect(const Candidates& candidates, std::int64_t first_row) {
    const auto count = static_cast<std::int64_t>(candidates.tokens.size() / candidates.end.size());
    for (std::size_t i = 0; i < live_.size(); ++i)
        for (std::int64_t rank = 0; rank < count; ++rank) {
            const auto at =
                static_cast<std::size_t>((first_row + static_cast<std::int64_t>(i)) * count + rank);
            const double total = live_[i].log_probability + candidates.log_probabilities[at];
            if (candidates.tokens[at] >= 0 && total > -std::numeric_limits<double>::infinity())
                continuations_.push_back({total,
                                          static_cast<std::int32_t>(i),
                                          candidates.tokens[at],
                                          static_cast<std::int32_t>(rank)});
        }
}

void SentenceSearch::collect_ends(const Candidates& candidates, std::int64_t first_row) {
    for (std::size_t i = 0; i < live_.size(); ++i) {
        const double end = candidates.end[static_cast<std::size_t>(first_row) + i];
        if (!std::isnan(end))
            continuations_.push_back(
                {live_[i].log_probability + end, static_cast<std::int32_t>(i), space_.end, 0});
    }
}

void SentenceSearch::finish(const Continuation& ended) {
    Hypothesis hypothesis;
    hypothesis.log_probability = ended.log_probability;
    hypothesis.score =
        ended.log_probability / std::pow(static_cast<double>(length_ + 1), options_.length_penalty);
    for (std::int32_t node = live_[static_cast<std::size_t>(ended.live)].node; node >= 0;
         node = nodes_[static_cast<std::size_t>(node)].parent)
        hypothesis.tokens.push_back(nodes_[static_cast<std::size_t>(node)].token);
    std::reverse(hypothesis.tokens.begin(), hypothesis.tokens.end());
    finished_.push_back(std::move(hypothesis));
}

void SentenceSearch::advance(const Candidates& candidates,
                             std::int64_t first_row,
                             std::vector<DecoderRow>& next_rows) {
    const auto beam = static_cast<std::size_t>(options_.beam);
    continuations_.clear();
    if (length_ == max_length_)
        collect_ends(candidates, first_row);
    else
        collect(candidates, first_row);
    if (continuations_.empty() && finished_.empty())
        throw BadData("the model gives no scores for a translation",
                      "they are not numbers",
                      "look at the model's training: its parameters are damaged");
    const std::size_t looked_at = std::min(continuations_.size(), 2 * beam);
    std::partial_sort(continuations_.begin(),
                      continuations_.begin() + static_cast<std::ptrdiff_t>(looked_at),
                      continuations_.end());
    std::vector<Live> next;
    const std::size_t first_next = next_rows.size();
    for (std::size_t i = 0; i < looked_at; ++i) {
        const Continuation& one = continuations_[i];
        if (one.token == space_.end) {
            if (i < beam && finished_.size() < beam)
                finish(one);
        } else if (next.size() < beam) {
            nodes_.push_back({live_[static_cast<std::size_t>(one.live)].node, one.token});
            next.push_back({one.log_probability, static_cast<std::int32_t>(nodes_.size()) - 1});
            next_rows.push_back({static_cast<std::int32_t>(first_row) + one.live, one.token});
        }
    }
    if (finished_.size() == beam || length_ == max_length_) {
        next.clear();
        next_rows.resize(first_next);
    }
    live_ = std::move(next);
    ++length_;
}

std::vector<Hypothesis> SentenceSearch::take_hypotheses() {
    std::stable_sort(finished_.begin(),
                     finished_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (static_cast<std::int64_t>(finished_.size()) > options_.hypotheses)
        finished_.resize(static_cast<std::size_t>(options_.hypotheses));
    return std::move(finished_);
}

void refuse(const std::string& option, const std::string& value, const std::string& why) {
    throw BadConfig(option + " is " + value, why, "give another number");
}

}  // namespace

void check(const BeamOptions& options) {
    if (options.beam < 1)
        refuse("--beam", std::to_string(options.beam), "one hypothesis at least is followed");
    if (options.hypotheses < 1 || options.hypotheses > options.beam)
        refuse("--nbest",
               std::to_string(options.hypotheses),
               "a beam of " + std::to_string(options.beam) + " finishes as many hypotheses");
    if (!(options.length_factor >= 0) || options.length_factor > 1e6)
        refuse("--max-len-a", std::to_string(options.length_factor), "it must be 0 or more");
    if (options.length_constant < 0)
        refuse("--max-len-b", std::to_string(options.length_constant), "it must be 0 or more");
    if (options.min_length < 0)
        refuse("--min-len", std::to_string(options.min_length), "it must be 0 or more");
    if (!std::isfinite(options.length_penalty))
        refuse("--length-penalty", std::to_string(options.length_penalty), "it is no number");
    if (!std::isfinite(options.unknown_penalty))
        refuse("--unk-penalty", std::to_string(options.unknown_penalty), "it is no number");
}

std::vector<std::vector<Hypothesis>> beam_search(StepDecoder& decoder,
                                                 std::span<const std::int64_t> source_lengths,
                                                 const SearchSpace& space,
                                                 const BeamOptions& options) {
    std::vector<SentenceSearch> sentences;
    std::vector<DecoderRow> rows, next_rows;
    for (const std::int64_t length : source_lengths) {
        rows.push_back({static_cast<std::int32_t>(sentences.size()), space.begin});
        sentences.emplace_back(space, options, length);
    }
    Candidates candidates;
    for (std::int64_t length = 0; !rows.empty(); ++length) {
        decoder.step(rows,
                     {2 * options.beam, length >= options.min_length, options.unknown_penalty},
                     candidates);
        std::int64_t first_row = 0;
        next_rows.clear();
        for (SentenceSearch& sentence : sentences) {
            const std::int64_t count = sentence.rows();
            if (!sentence.done())
                sentence.advance(candidates, first_row, next_rows);
            first_row += count;
        }
        std::swap(rows, next_rows);
    }
    std::vector<std::vector<Hypothesis>> result;
    for (SentenceSearch& sentence : sentences)
        result.push_back(sentence.take_hypotheses());
    return result;
}

}  // namespace hetseq
