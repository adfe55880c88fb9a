#pragma once

/// Put this before a function of plain loops. The function is then compiled for AVX-512, for AVX2
/// with FMA and for the baseline, and the best version is chosen when the program is loaded.
/// Functions that it calls must be inlined into it (`HETSEQ_ALWAYS_INLINE`); otherwise they stay
/// baseline code. The choice runs before the thread sanitizer's library is loaded, and would call
/// it: under that sanitizer only the baseline is compiled.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
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
