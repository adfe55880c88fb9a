# Links with lld where it is installed and works, in a quarter of the time that the GNU linker takes: the layers' archives
# are read for each of some 50 programs. -DHETSEQ_LINKER= keeps the compiler's own linker.
include_guard(GLOBAL)
include(CheckLinkerFlag)

set(HETSEQ_LINKER "lld" CACHE STRING "Linker to use where the compiler finds it (-fuse-ld), or empty")
mark_as_advanced(HETSEQ_LINKER)
if(HETSEQ_LINKER AND NOT "${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}" MATCHES "-fuse-ld=")
  check_linker_flag(CXX "-fuse-ld=${HETSEQ_LINKER}" HETSEQ_LINKS_WITH_${HETSEQ_LINKER})
  if(HETSEQ_LINKS_WITH_${HETSEQ_LINKER})
    # nvcc, which links device code, does not know the flag.
    add_link_options("$<$<LINK_LANGUAGE:C,CXX>:-fuse-ld=${HETSEQ_LINKER}>")
  endif()
endif()
