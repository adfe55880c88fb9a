# Defines hetseq_version: "hetseq/version.hpp", made when configuring, and the git revision, looked up at every build
# in a unit of its own so that a commit compiles nothing else.
include_guard(GLOBAL)

string(REGEX MATCH "^[^,\n]+" hetseq_mpi_version "${MPI_C_LIBRARY_VERSION_STRING}")
string(REGEX REPLACE " Version:[ \t]*" " " hetseq_mpi_version "${hetseq_mpi_version}")
if(NOT hetseq_mpi_version)
  set(hetseq_mpi_version "MPI ${MPI_C_VERSION}")
endif()

set(generated_dir "${PROJECT_BINARY_DIR}/generated")
configure_file("${PROJECT_SOURCE_DIR}/cmake/version.hpp.in" "${generated_dir}/hetseq/version.hpp" @ONLY)
add_custom_target(hetseq_revision
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DINPUT=${PROJECT_SOURCE_DIR}/cmake/revision.cpp.in
          -DOUTPUT=${generated_dir}/revision.cpp -P ${PROJECT_SOURCE_DIR}/cmake/HetseqRevision.cmake
  BYPRODUCTS "${generated_dir}/revision.cpp"
  COMMENT "Looking up the git revision" VERBATIM)
add_library(hetseq_version STATIC "${generated_dir}/revision.cpp")
add_dependencies(hetseq_version hetseq_revision)
target_include_directories(hetseq_version PUBLIC "$<BUILD_INTERFACE:${generated_dir}>")
