#include "tensor_description.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t undefined_type = -1;

class WordReader {
public:
    explicit WordReader(std::span<const std::int64_t> words) : words_{words} {}

    std::int64_t next() {
        HETSEQ_ASSERT(!words_.empty());
        const std::int64_t word = words_.front();
        words_ = words_.subspan(1);
        return word;
    }
    std::size_t next_size() {
        const std::int64_t word = next();
        HETSEQ_ASSERT(word >= 0);
        return static_cast<std::size_t>(word);
    }

private:
    std::span<const std::int64_t> words_;
};

TensorDescription read_tensor(WordReader& words) {
    TensorDescription tensor;
    const std::int64_t type = words.next();
    HETSEQ_ASSERT(type >= undefined_type &&
                  type < static_cast<std::int64_t>(c10::ScalarType::NumOptions));
    if (type != undefined_type)
        tensor.type = static_cast<c10::ScalarType>(type);
    tensor.requires_grad = words.next() != 0;
    for (std::size_t left = words.next_size(); left > 0; --left)
        tensor.sizes.push_back(words.next());
    return tensor;
}

}  // namespace

std::vector<std::int64_t> to_words(const std::vector<TensorDescription>& tensors) {
    std::vector<std::int64_t> words{0, static_cast<std::int64_t>(tensors.size())};
    for (const TensorDescription& tensor : tensors) {
        words.push_back(tensor.type ? static_cast<std::int64_t>(*tensor.type) : undefined_type);
        words.push_back(tensor.requires_grad ? 1 : 0);
        words.push_back(static_cast<std::int64_t>(tensor.sizes.size()));
        words.insert(words.end(), tensor.sizes.begin(), tensor.sizes.end());
    }
    words.resize(std::max(words.size(), header_words));
    words.front() = static_cast<std::int64_t>(words.size());
    return words;
}

std::size_t word_count(std::span<const std::int64_t> header) {
    const std::size_t count = WordReader{header}.next_size();
    HETSEQ_ASSERT(count >= header_words);
    return count;
}

std::vector<TensorDescription> from_words(std::span<const std::int64_t> words) {
    WordReader reader{words};
    HETSEQ_ASSERT(reader.next_size() == words.size());
    std::vector<TensorDescription> tensors;
    for (std::size_t left = reader.next_size(); left > 0; --left)
        tensors.push_back(read_tensor(reader));
    return tensors;
}

}  // namespace hetseq
