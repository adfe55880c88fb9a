#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hetseq {

/// How sacreBLEU divides a segment into words: as mteval-v13a.pl, not at all, as mteval-v14.pl
/// (`intl`), or into characters.
enum class BleuTokenizer { mteval_13a, none, intl, characters };

/// The names in sacreBLEU's signature, in the order of the values: "13a", "none", "intl", "char".
const std::vector<std::string>& bleu_tokenizer_names();

/// The segment with blanks between its words. The blanks are as many as the tokenizer's rules make.
std::u32string tokenized(std::u32string_view segment, BleuTokenizer tokenizer);

}  // namespace hetseq
