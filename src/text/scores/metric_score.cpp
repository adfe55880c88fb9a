#include "hetseq/text/scores/metric_score.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "hetseq/util/json.hpp"
#include "hetseq/util/text.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {

std::string MetricScore::signature() const {
    std::vector<std::string> parts;
    for (const auto& [name, value] : settings)
        parts.push_back(name + ":" + value);
    return join(parts, "|");
}

std::string score_text(const MetricScore& score, int width) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", width, score.score);
    return text;
}

std::string score_line(const MetricScore& score, int width) {
    return score.name + "|" + score.signature() + " = " + score_text(score, width) +
           (score.details.empty() ? "" : " " + score.details);
}

std::string score_lines(const std::vector<MetricScore>& scores, int width) {
    std::vector<std::string> lines;
    std::size_t widest = 0;
    for (const MetricScore& score : scores) {
        lines.push_back(score_line(score, width));
        widest = std::max(widest, lines.back().find('='));
    }
    std::string text;
    for (const std::string& line : lines)
        text += std::string(widest - line.find('='), ' ') + line + "\n";
    return text;
}

std::string score_json(const MetricScore& score, int width, JsonForm form) {
    nlohmann::ordered_json json{{"name", score.name},
                                {"score", std::strtod(score_text(score, width).c_str(), nullptr)},
                                {"signature", score.signature()}};
    if (!score.details.empty())
        json["verbose_score"] = score.details;
    for (const auto& [name, value] : score.settings)
        json[name] = value;
    return json_text(json, form == JsonForm::indented ? 1 : -1);
}

std::string score_json(const std::vector<MetricScore>& scores, int width) {
    std::vector<std::string> objects;
    for (const MetricScore& score : scores)
        objects.push_back(score_json(score, width, JsonForm::indented));
    const std::string text = join(objects, ",\n");
    return objects.size() == 1 ? text + "\n" : "[\n" + text + "\n]\n";
}

}  // namespace hetseq
