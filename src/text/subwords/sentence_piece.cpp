#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/text/subwords/train_subwords.hpp"

#include "sentence_piece_model.hpp"
#include "text/vocabulary_kind.hpp"
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

// The one source that includes the library. It brings its own copy of protobuf, whose symbols
// libsentencepiece.so exports. LibTorch brings another version and exports none of its functions
// but three copies of byteswap, which are alike, and one counter, of which both use the same 8
// bytes (nm -D on LibTorch 2.11 and libsentencepiece 0.1.97). So both may be shared libraries of
// one process.

// Both libraries also have a FLAGS_minloglevel: a number of 4 bytes in libc10, an object of 32 in
// libsentencepiece. The loader makes one of them, the first that it finds, and where that was the
// number, the object's constructor wrote over what lies behind it (a lock of torch.jit's). It finds
// this one before both, which is large enough for either. libc10 reads its own in Python, where it
// was loaded before, and elsewhere only in a program that takes torch's flags from its command
// line.
extern "C" __attribute__((visibility("default"))) char FLAGS_minloglevel[];
alignas(64) char FLAGS_minloglevel[256] = {};

namespace hetseq {

namespace {

using sentencepiece::SentencePieceProcessor;
using sentencepiece::util::Status;

// "src/trainer_interface.cc(582) [...] Vocabulary size too high" -> the last part.
std::string reason_of(const Status& status) {
    const std::string text = status.message();
    const std::size_t end = text.rfind("] ");
    return end == std::string::npos || end + 2 == text.size() ? text : text.substr(end + 2);
}

class SentencePiece final : public VocabularyKind {
public:
    SentencePiece(std::string_view bytes, const std::string& origin) {
        check_sentence_piece_model(bytes, origin);
        const Status status = processor_.LoadFromSerializedProto(bytes);
        if (!status.ok())
            throw BadData(origin + " cannot be read as a SentencePiece model",
                          reason_of(status),
                          "copy or prepare it again");
        if (processor_.unk_id() != 0 || processor_.bos_id() != 1 || processor_.eos_id() != 2)
            throw BadData(origin + " has other ids than hetseq uses",
                          "unknown, begin and end are " + std::to_string(processor_.unk_id()) +
                              ", " + std::to_string(processor_.bos_id()) + ", " +
                              std::to_string(processor_.eos_id()) + ", expected 0, 1, 2",
                          "train it with spm_train's default ids, or let hetseq train it");
    }

    std::int64_t size() const override { return processor_.GetPieceSize(); }

    void encode(std::string_view line, std::vector<std::int32_t>& ids) const override {
        std::vector<int> found;
        const Status status = processor_.Encode(line, &found);
        if (!status.ok())
            throw BadData("a line cannot be encoded", reason_of(status));
        ids.insert(ids.end(), found.begin(), found.end());
    }

    std::string decode(const std::vector<std::int32_t>& ids) const override {
        std::string text;
        const Status status = processor_.Decode(ids, &text);
        if (!status.ok())
            throw BadData("ids cannot be decoded", reason_of(status));
        return text;
    }

    std::string piece(std::int32_t id) const override { return processor_.IdToPiece(id); }

private:
    SentencePieceProcessor processor_;
};

// What the trainer puts for unknown characters: it leaves lines out that hold it.
constexpr std::string_view reserved_character = "\xE2\x96\x85";  // U+2585

// Lines for the trainer, one at a time. Counts those that it leaves out.
class Lines final : public sentencepiece::SentenceIterator {
public:
    Lines(const std::function<bool(std::string&)>& next,
          std::int64_t longest,
          TrainedSubwords& counts)
        : next_{next}, longest_{longest}, counts_{counts} {
        Next();
    }
    bool done() const override { return done_; }
    void Next() override {
        done_ = !next_(line_);
        if (done_ || line_.empty())
            return;
        ++counts_.lines;
        if (std::ssize(line_) > longest_)
            ++counts_.too_long;
        else if (line_.find(reserved_character) != std::string::npos)
            ++counts_.reserved;
    }
    const std::string& value() const override { return line_; }
    Status status() const override { return {}; }

private:
    const std::function<bool(std::string&)>& next_;
    std::int64_t longest_;
    TrainedSubwords& counts_;
    std::string line_;
    bool done_ = false;
};

void check_lines_are_left(const TrainedSubwords& trained, const SubwordOptions& options) {
    if (trained.too_long > 0 && trained.lines == trained.too_long + trained.reserved)
        throw BadConfig("no vocabulary can be trained on this text",
                        std::to_string(trained.too_long) + " of its " +
                            std::to_string(trained.lines) + " lines are longer than " +
                            std::to_string(options.max_sentence_length) +
                            " bytes, and no other one is left",
                        "divide the lines into sentences, or give a larger --max-sentence-length");
}

}  // namespace

std::unique_ptr<const VocabularyKind> make_sentence_piece(std::string_view bytes,
                                                          const std::string& origin) {
    return std::make_unique<SentencePiece>(bytes, origin);
}

const std::vector<std::string>& subword_model_types() {
    static const std::vector<std::string> names{"bpe", "unigram"};
    return names;
}

const std::vector<std::string>& subword_normalizations() {
    static const std::vector<std::string> names{
        "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"};
    return names;
}

TrainedSubwords train_subwords(const SubwordOptions& options,
                               const std::function<bool(std::string& line)>& next) {
    const std::unordered_map<std::string, std::string> arguments{
        {"model_type", options.model_type},
        {"vocab_size", std::to_string(options.vocab_size)},
        {"normalization_rule_name", options.normalization},
        {"character_coverage", std::to_string(options.character_coverage)},
        {"max_sentence_length", std::to_string(options.max_sentence_length)},
        {"num_threads", "4"},   // unigram models depend on it in the last bits
        {"minloglevel", "2"}};  // errors alone
    TrainedSubwords trained;
    Lines lines(next, options.max_sentence_length, trained);
    const Status status =
        sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &trained.model);
    check_lines_are_left(trained, options);
    if (!status.ok())
        throw BadConfig("no vocabulary of " + std::to_string(options.vocab_size) +
                            " ids can be trained on this text",
                        "SentencePiece: " + reason_of(status),
                        "choose another --vocab-size");
    return trained;
}

}  // namespace hetseq
