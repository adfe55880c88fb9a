#include "block_lengths.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace hetseq {

BlockLengths::BlockLengths(const ShardSet& shards,
                           std::vector<std::size_t> fields,
                           IoThread& io,
                           std::int64_t block_length,
                           std::size_t kept)
    : io_{io},
      samples_{shards.samples()},
      block_length_{block_length},
      kept_{kept},
      reader_{std::make_shared<LengthReader>(shards, std::move(fields))} {}

BlockLengths::Block& BlockLengths::find(std::int64_t block) {
    const auto known = std::find_if(
        blocks_.begin(), blocks_.end(), [&](const Block& one) { return one.block == block; });
    if (known != blocks_.end()) {
        std::rotate(blocks_.begin(), known, known + 1);
        return blocks_.front();
    }
    auto promise = std::make_shared<std::promise<Lengths>>();
    if (blocks_.size() == kept_)
        blocks_.pop_back();
    blocks_.push_front({block, promise->get_future().share()});
    const std::int64_t begin = block * block_length_;
    const std::int64_t end = std::min(begin + block_length_, samples_);
    io_.post([promise, begin, end, reader = reader_] {
        try {
            promise->set_value(std::make_shared<const RowLengths>(reader->read(begin, end)));
        } catch (...) {
            promise->set_exception(std::current_exception());
        }
    });
    return blocks_.front();
}

std::shared_ptr<const RowLengths> BlockLengths::lengths(std::int64_t block) {
    return find(block).lengths.get();
}

std::shared_future<BlockLengths::Lengths> BlockLengths::ask(std::int64_t block) {
    return find(block).lengths;
}

void BlockLengths::read_ahead(std::int64_t block) {
    find(block);
}

}  // namespace hetseq
