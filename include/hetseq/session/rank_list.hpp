#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

struct Topology;

/// One rank's value in an option that may differ over ranks: a whole number for all, or "KEY=N,..."
/// where KEY is a rank ("3"), a range of ranks ("0-3"), a host's name, or words of a device's name
/// ("v100", any case). The first entry that fits counts. A host's name is never read as a device's.
/// Entries may fit no rank, so that one list serves every job on a cluster. Throws BadConfig that
/// names `option` for a malformed list and for a rank that no entry fits.
std::int64_t rank_value(const std::string& option,
                        const std::string& list,
                        const Topology& topology,
                        int rank);

/// The word of a rank on `host`, one of `words`, in an option that may differ over ranks: a word
/// for all, or "KEY=WORD,..." where KEY is a rank, a range of ranks or a host's name, as above.
/// Devices cannot be named: the option may choose them.
std::string rank_word(const std::string& option,
                      const std::string& list,
                      const std::vector<std::string>& words,
                      int rank,
                      const std::string& host);

/// Whether a whole number may stand for a word.
enum class OrNumber { no, yes };

/// The word of a rank whose device is known: KEY may also be a host's name or words of a device's
/// name, as in `rank_value`.
std::string rank_word(const std::string& option,
                      const std::string& list,
                      const std::vector<std::string>& words,
                      const Topology& topology,
                      int rank,
                      OrNumber or_number = OrNumber::no);

/// "'1=64' and 'h1=16'": the entry of `list` that counts for a rank, and the first other one that
/// fits it with another value; empty where there is none. `list` can be read.
std::string competing_entries(const std::string& list, const Topology& topology, int rank);
/// Where devices cannot be named.
std::string competing_entries(const std::string& list, int rank, const std::string& host);

/// The same values written as a list by rank: "0=64,1=16", or a single one when all are equal.
std::string rank_list(const std::vector<std::int64_t>& values);
std::string rank_list(const std::vector<std::string>& values);

}  // namespace hetseq
