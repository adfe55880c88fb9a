#pragma once

/// Before a function of plain loops: compiled for AVX-512, AVX2 with FMA and the baseline, and the
/// best one chosen when the program is loaded. What it calls must be inlined into it
/// (`HETSEQ_ALWAYS_INLINE`), or it stays baseline code.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HETSEQ_VECTOR_CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HETSEQ_VECTOR_CLONES
#endif

#if defined(__GNUC__)
#define HETSEQ_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define HETSEQ_ALWAYS_INLINE inline
#endif
