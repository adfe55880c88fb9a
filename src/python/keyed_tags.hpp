#pragma once

#include <vector>

namespace hetseq {

/// Tags of the keyed operators; `Tag` is at::Tag. A CUDA graph would keep the seed, the update and
/// the sample ids of its capture. LibTorch 2.7 has no tag that says so.
template <class Tag>
std::vector<Tag> keyed_tags() {
    if constexpr (requires { Tag::cudagraph_unsafe; })
        return {Tag::pt2_compliant_tag, Tag::cudagraph_unsafe};
    else
        return {Tag::pt2_compliant_tag};
}

}  // namespace hetseq
