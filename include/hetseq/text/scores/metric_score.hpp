#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hetseq {

/// The version of sacreBLEU whose numbers and signatures these are (tests/reference/bleu.py).
constexpr const char* sacrebleu_version = "2.6.0";

/// A metric's score as sacreBLEU shows it.
struct MetricScore {
    std::string name;
    double score = 0;
    std::vector<std::pair<std::string, std::string>> settings;  // of the signature, in its order
    std::string details;  // what follows the score; may be empty

    /// "nrefs:1|case:mixed|..."
    std::string signature() const;
};

/// "22.7", with `width` digits after the point.
std::string score_text(const MetricScore& score, int width);

/// "BLEU|nrefs:1|... = 22.7 56.2/28.7/16.9/10.3 (BP = ...)"
std::string score_line(const MetricScore& score, int width);

/// One line for each, ended by a newline, with the '=' below each other.
std::string score_lines(const std::vector<MetricScore>& scores, int width);

enum class JsonForm { indented, one_line };

/// An object with sacreBLEU's keys. Its score has `width` digits after the point.
std::string score_json(const MetricScore& score, int width, JsonForm form);

/// The object of one score, or a list of several, as sacreBLEU prints it; ends with a newline.
std::string score_json(const std::vector<MetricScore>& scores, int width);

}  // namespace hetseq
