#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetseq/data/files/shard_format.hpp"

namespace hetseq {

/// Writes a shard of ragged fields of ids: for each field NAME the datasets NAME (unsigned
/// integers) and NAME_offsets (int64), in chunks compressed by gzip. A field that is not ragged has
/// a value in each row and no offsets; it may be of floating-point numbers (fp64). Memory holds a
/// chunk of each. The same rows give the same bytes. The file appears under its name by `commit`;
/// before, it lies beside it, and without `commit` it is removed. All members throw IoError.
class RaggedShardWriter {
public:
    /// `most_ids`: ids are below it. They take 2 bytes where that suffices, else 4. 0: numbers, of
    /// a field that is not ragged.
    struct Field {
        std::string name;
        std::int64_t most_ids = 0;
        bool is_ragged = true;
    };

    RaggedShardWriter(std::filesystem::path path,
                      const std::vector<Field>& fields,
                      ShardFormat format = ShardFormat::earliest);
    ~RaggedShardWriter();
    RaggedShardWriter(RaggedShardWriter&&) noexcept;

    /// The next row of the field with this index.
    void append(std::size_t field, std::span<const std::int32_t> row);
    /// The next number of a field of numbers.
    void append_number(std::size_t field, double number);
    /// A dataset `name` of bytes (uint8, one dimension) that belongs to all rows.
    void attach(const std::string& name, std::string_view bytes);
    /// An attribute of the file: text in UTF-8, not empty. One above 64 KiB needs
    /// ShardFormat::large_attributes.
    void attach_text(const std::string& name, const std::string& text);
    /// The attachment `existing` under another name too, without its bytes (a hard link).
    void attach_again(const std::string& name, const std::string& existing);

    /// All rows and attachments are given: what is left is written and synced to disk. Returns the
    /// file's size [bytes].
    std::int64_t finish();
    /// The finished file gets its name.
    void commit();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hetseq
