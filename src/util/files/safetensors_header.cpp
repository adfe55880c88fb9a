#include "safetensors_header.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/util/json_number.hpp"

#include <nlohmann/json.hpp>

namespace hetseq::detail {

namespace {

using nlohmann::json;

// A model of 10^12 parameters has 140,000 tensors in 60 files. What has more than these would take
// minutes and gigabytes to read.
constexpr std::size_t most_tensors = 100'000;
constexpr std::size_t most_values = 40 * most_tensors;  // numbers, texts, lists in the header
constexpr int most_depth = 3;                           // tensors, what is said of one, its shape

/// Finds, without a tree of the values, what the parser lets pass: a key that comes twice, and more
/// than any model has. (The parser's own callback goes through all tensors at each one's end.)
class HeaderChecks final : public json::json_sax_t {
public:
    std::string problem;

    bool null() override { return count(); }
    bool boolean(bool) override { return count(); }
    bool number_integer(json::number_integer_t) override { return count(); }
    bool number_unsigned(json::number_unsigned_t) override { return count(); }
    bool number_float(json::number_float_t, const json::string_t&) override { return count(); }
    bool string(json::string_t&) override { return count(); }
    bool binary(json::binary_t&) override { return count(); }
    bool start_array(std::size_t) override { return begin() && count(); }
    bool end_array() override { return end(); }
    bool start_object(std::size_t) override {
        keys_.emplace_back();
        return begin() && count();
    }
    bool end_object() override {
        keys_.pop_back();
        return end();
    }
    bool key(json::string_t& name) override {
        if (!keys_.back().insert(name).second)
            return refuse("its header has '" + name + "' twice");
        if (keys_.front().size() > most_tensors)
            return refuse(limit());
        return true;
    }
    // What is no JSON, the parser says.
    bool parse_error(std::size_t, const std::string&, const json::exception&) override {
        return false;
    }

private:
    static std::string limit() {
        return "the limit is " + std::to_string(most_tensors) + " tensors in a file";
    }
    bool refuse(std::string why) {
        problem = std::move(why);
        return false;
    }
    bool count() { return ++values_ <= most_values || refuse(limit()); }
    bool begin() {
        return ++depth_ <= most_depth || refuse("its header is nested deeper than tensors are");
    }
    bool end() {
        --depth_;
        return true;
    }

    std::vector<std::set<std::string>> keys_;  // of the objects being parsed, outermost first
    std::size_t values_ = 0;
    int depth_ = 0;
};

/// Reports everything that is wrong with one file in the same form.
class HeaderParser {
public:
    explicit HeaderParser(const std::filesystem::path& path) : path_{path} {}

    SafetensorsHeader parse(const std::string& text, std::uint64_t data_bytes) const {
        const json root = checked_root(text);
        SafetensorsHeader header;
        for (const auto& [name, value] : root.items()) {
            if (name == "__metadata__")
                header.metadata = metadata(value);
            else
                header.entries.push_back(entry(name, value));
        }
        std::stable_sort(
            header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
                // A tensor without elements ends where the next begins.
                return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
        check_coverage(header.entries, data_bytes);
        return header;
    }

private:
    [[noreturn]] void fail(const std::string& why) const {
        throw BadData(
            path_.string() + " is not a valid safetensors file", why, "write or download it again");
    }

    json checked_root(const std::string& text) const {
        HeaderChecks checks;
        json::sax_parse(text, &checks);
        if (!checks.problem.empty())
            fail(checks.problem);
        json root;
        try {
            root = parse_json<json>(text);
        } catch (const json::exception& error) {
            fail(std::string("its header is not JSON: ") + error.what());
        }
        if (!root.is_object())
            fail("its header is not a JSON object");
        return root;
    }

    std::map<std::string, std::string> metadata(const json& value) const {
        if (!value.is_object())
            fail("__metadata__ is not an object");
        std::map<std::string, std::string> metadata;
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string())
                fail("__metadata__ '" + key + "' is not a string");
            metadata[key] = text.get<std::string>();
        }
        return metadata;
    }

    SafetensorEntry entry(const std::string& name, const json& value) const {
        if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
            !value.contains("shape") || !value.contains("data_offsets"))
            fail("tensor '" + name + "' is not described by dtype, shape and data_offsets");
        SafetensorEntry entry;
        entry.name = name;
        entry.type = type(name, value["dtype"]);
        for (const json& extent : array(name, "shape", value["shape"]))
            entry.shape.push_back(static_cast<std::int64_t>(count(name, "shape", extent)));
        const json& offsets = array(name, "data_offsets", value["data_offsets"]);
        if (offsets.size() != 2)
            fail("tensor '" + name + "' does not have two data_offsets");
        entry.begin = count(name, "data_offsets", offsets[0]);
        entry.end = count(name, "data_offsets", offsets[1]);
        check_size(entry);
        return entry;
    }

    SafetensorType type(const std::string& name, const json& value) const {
        const auto type = value.is_string() ? safetensor_type(value.get<std::string>())
                                            : std::optional<SafetensorType>{};
        if (!type)
            fail("tensor '" + name + "' has the unknown dtype " + json_text(value));
        return *type;
    }

    const json& array(const std::string& name, const char* key, const json& value) const {
        if (!value.is_array())
            fail("tensor '" + name + "': " + key + " is not an array");
        return value;
    }

    std::uint64_t count(const std::string& name, const char* key, const json& value) const {
        if (!value.is_number_unsigned() ||
            value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
            fail("tensor '" + name + "': " + key + " holds " + brief_json(value));
        return value.get<std::uint64_t>();
    }

    void check_size(const SafetensorEntry& entry) const {
        std::uint64_t bytes = size_of(entry.type);
        for (const std::int64_t extent : entry.shape)
            if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
                fail("tensor '" + entry.name + "' of shape " + shape_text(entry.shape) +
                     " is too large");
        if (entry.end < entry.begin || entry.end - entry.begin != bytes)
            fail("tensor '" + entry.name + "' of shape " + shape_text(entry.shape) + " needs " +
                 std::to_string(bytes) + " bytes, its data_offsets are " +
                 std::to_string(entry.begin) + " and " + std::to_string(entry.end));
    }

    void check_coverage(const std::vector<SafetensorEntry>& entries,
                        std::uint64_t data_bytes) const {
        std::uint64_t end = 0;
        for (const SafetensorEntry& entry : entries) {
            if (entry.begin != end)
                fail("tensor '" + entry.name + "' begins at byte " + std::to_string(entry.begin) +
                     " of the data, the one before it ends at " + std::to_string(end));
            end = entry.end;
        }
        if (end != data_bytes)
            fail("its header describes " + std::to_string(end) + " bytes of data, the file has " +
                 std::to_string(data_bytes));
    }

    const std::filesystem::path& path_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& text,
                                           std::uint64_t data_bytes,
                                           const std::filesystem::path& path) {
    return HeaderParser{path}.parse(text, data_bytes);
}

}  // namespace hetseq::detail
