#include "hetseq/session/rank_device.hpp"

#include <algorithm>
#include <utility>

#include "hetseq/session/rank_list.hpp"

namespace hetseq {

namespace {

constexpr std::pair<const char*, DeviceChoice> choices[]{
    {"auto", DeviceChoice::automatic}, {"cpu", DeviceChoice::cpu}, {"cuda", DeviceChoice::cuda}};

}  // namespace

std::vector<std::string> device_words() {
    std::vector<std::string> words;
    for (const auto& [word, choice] : choices)
        words.emplace_back(word);
    return words;
}

DeviceChoice rank_device(const std::string& list, int rank, const std::string& host) {
    const std::string word = rank_word("device", list, device_words(), rank, host);
    return std::find_if(std::begin(choices),
                        std::end(choices),
                        [&](const auto& choice) { return choice.first == word; })
        ->second;
}

}  // namespace hetseq
