# Compiles through ccache where it is installed.
#
# Sloppiness, BASEDIR and NOHASHDIR let clones at different paths share objects and the precompiled header; DEPEND takes
# the dependencies from the compiler instead of a preprocessor run of 2 s a unit, and INODECACHE spares each unit reading
# the 600 MB of the precompiled header to know it again.
include_guard(GLOBAL)

find_program(HETSEQ_CCACHE ccache)
mark_as_advanced(HETSEQ_CCACHE)
if(HETSEQ_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_DEPEND=1 CCACHE_INODECACHE=1 ${HETSEQ_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()
