#pragma once

#include <string>
#include <string_view>

namespace hetseq {

/// What is wrong with a SentencePiece model's `precompiled_charsmap`; empty where every search in
/// it stays inside of it and ends. It holds, in little-endian byte order: the size of a trie in
/// bytes (uint32), a double array (darts-clone: units of 32 bits) that finds the rule for the
/// beginning of a text, and the texts that the rules put there, each ended by a 0.
std::string character_map_fault(std::string_view map);

}  // namespace hetseq
