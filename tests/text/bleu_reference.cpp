#include "text/bleu_reference.hpp"

#include <cstdlib>
#include <fstream>

#include "hetseq/text/text_lines.hpp"

namespace hetseq {

const nlohmann::json& bleu_reference() {
    static const nlohmann::json reference = [] {
        const char* other = std::getenv("HETSEQ_BLEU_REFERENCE");
        std::ifstream file{other != nullptr ? other : "tests/reference/bleu.json"};
        return nlohmann::json::parse(file);
    }();
    return reference;
}

ReferenceCorpus ReferenceCorpus::from_json(const nlohmann::json& corpus) {
    return {corpus.at("hypotheses").get<std::vector<std::string>>(),
            corpus.at("references").get<std::vector<std::vector<std::string>>>()};
}

std::vector<std::string_view> ReferenceCorpus::references_of(std::size_t segment,
                                                             std::size_t count) const {
    std::vector<std::string_view> result;
    for (std::size_t i = 0; i < count; ++i)
        result.emplace_back(references.at(i).at(segment));
    return result;
}

std::filesystem::path real_translations() {
    const char* folder = std::getenv("HETSEQ_TEST_DATA");
    return std::filesystem::path(folder != nullptr ? folder : "../shared/data") / "bleu";
}

std::vector<RealTranslations> read_real_translations() {
    const std::filesystem::path folder = real_translations();
    std::ifstream file{folder / "expected_scores.json"};
    const nlohmann::json expected = nlohmann::json::parse(file);
    const std::vector<std::string> reference =
        read_text_lines((folder / expected.at("ref").get<std::string>()).string());
    std::vector<RealTranslations> systems;
    for (const auto& [name, scores] : expected.at("systems").items())
        systems.push_back(
            {name, {read_text_lines((folder / (name + ".txt")).string()), {reference}}, scores});
    return systems;
}

}  // namespace hetseq
