#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// The candidate nearest to `name` by edit distance; empty when no candidate is near enough to be
/// meant.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// " Did you mean X?" for the nearest candidate, otherwise a list of all of them.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// The parts of `text` between `separator`s, blanks around each removed; none for a blank text.
std::vector<std::string> split(std::string_view text, char separator);

std::string join(std::span<const std::string> parts, std::string_view separator);

std::string to_lower(std::string_view text);

/// True if `key` is a run of whole words of `text`, in upper or lower case, whatever stands between
/// the words: "Tesla V100-SXM2-16GB" holds "v100" and "tesla v100", "GeForce GTX 1080 Ti" holds
/// "1080ti", but "A100" does not hold "a10".
bool holds_words(std::string_view text, std::string_view key);

/// "1:02:03" or "2:03" from seconds.
std::string format_duration(double seconds);

/// `digits` significant digits without trailing zeros: "0.1234", "1.2e-05", "1890" of 1893 with 3;
/// from 10,000 on "92,780".
std::string format_number(double value, int digits = 4);

/// `text` with its lines broken at blanks, where they are longer than `columns`; what goes on is
/// indented. `taken`: columns before the text's beginning.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t taken = 0);

/// Columns padded to a common width, two blanks between; the first row is the head. Ends with a
/// newline.
std::string format_table(std::span<const std::vector<std::string>> rows);

}  // namespace hetseq
