# Compiles through ccache where it is installed; the settings let it cache precompiled headers and
# share objects between checkouts.
include_guard(GLOBAL)

find_program(HETSEQ_CCACHE ccache)
mark_as_advanced(HETSEQ_CCACHE)
if(HETSEQ_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${HETSEQ_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()
