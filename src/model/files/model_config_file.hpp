#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hetseq::detail {

/// A config.json that describes a network. Every complaint names the file and the key. Keys that
/// are absent or null leave a value as it is.
class ModelConfigFile {
public:
    /// `network` as in "hetseq's BERT"; `presets` as in "tiny, base". Throws MissingInput or
    /// BadData (no JSON object).
    ModelConfigFile(const std::filesystem::path& path,
                    std::string network,
                    const std::string& presets);

    // Each throws BadConfig where the value is of another kind.
    void read(const char* key, std::int64_t& value) const;
    void read(const char* key, double& value) const;
    void read(const char* key, std::optional<double>& value) const;
    void read(const char* key, std::string& value) const;
    void read(const char* key, bool& value) const;
    /// The texts of an object whose keys are "0", "1" and so on.
    void read(const char* key, std::vector<std::string>& values) const;
    /// The first text of a list.
    void read_first(const char* key, std::string& value) const;

    /// True where the key is present and its value null.
    bool is_null(const char* key) const;

    /// Throws BadConfig where the key is present with another value.
    void require(const char* key, const nlohmann::json& only) const;

private:
    const nlohmann::json* find(const char* key) const;
    [[noreturn]] void fail(const std::string& key, const std::string& why) const;

    std::filesystem::path path_;
    std::string network_;
    nlohmann::json root_;
};

/// Throws BadConfig "ORIGIN: PROBLEM (WHY)" unless `condition`.
void require(bool condition,
             const std::string& origin,
             const std::string& problem,
             const std::string& why);

}  // namespace hetseq::detail
