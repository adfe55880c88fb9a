include_guard(GLOBAL)
include(HetseqUnits)

# Some machines are four times slower than others, and busy.
set(HETSEQ_TEST_TIMEOUT 900 CACHE STRING "Seconds before a test is killed")

# The GoogleTest entry point of tests that run as several ranks.
add_library(hetseq_mpi_gtest_main STATIC ${PROJECT_SOURCE_DIR}/tests/mpi_gtest_main.cpp)
target_link_libraries(hetseq_mpi_gtest_main PUBLIC GTest::gtest hetseq::mpi PRIVATE hetseq_comm)

# Tests that need no LibTorch, for builds where it is too dear to compile with (sanitizers).
add_custom_target(plain_tests)
# Those over the stand-ins of CUDA and NCCL, with the programs that they run.
add_custom_target(stand_in_tests)

# ctest has five places a core (jobs/common.sh), of which a test takes two.
#
# hetseq_reserve_cores(<test> <cores>): while the test runs. Those that take several begin first, the most cores before
# all. Begun later they would wait for cores to come free at once, which happens when all other tests are done.
function(hetseq_reserve_cores test cores)
  set(places 2)
  if(cores GREATER 1)
    math(EXPR places "3 * ${cores}")
  endif()
  set_tests_properties(${test} PROPERTIES PROCESSORS ${places})
  if(cores GREATER 1)
    math(EXPR cost "100 * ${cores}")
    set_tests_properties(${test} PROPERTIES COST ${cost})
  endif()
endfunction()

# hetseq_waits_mostly(<test>...): for timeouts, for other processes. They take one place, and begin first.
function(hetseq_waits_mostly)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 1 COST 150)
endfunction()

# Threads of OpenMP that have nothing to do would look for work for a while, on cores that other tests need: a tenth of all
# the time.
set(hetseq_test_environment OMP_WAIT_POLICY=passive)

# Ranks of one machine, however few cores it has and whoever runs them.
set(hetseq_rank_environment
  ${hetseq_test_environment} OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)

# hetseq_add_test(<name> [TORCH] [STAND_IN] [OWN_MAIN] [RANKS n...] [LABELS l...] [LIBRARIES t...] [INCLUDES folder...] SOURCES f...)
#
# Builds one test executable (a layer's tests of one kind together, since linking LibTorch is slow) and registers one
# ctest entry per rank count (name/1, name/4, ...). Without RANKS the test is serial and does not start MPI.
# TORCH: it has units that use tensors; they share the precompiled header. INCLUDES: folders of private headers that it
# looks at. STAND_IN: with the stand-ins of CUDA and NCCL (tests/stand_in) instead of a GPU, in a build with CUDA; no such
# test otherwise. OWN_MAIN: its sources hold `main`. Tests run in the repository's root.
function(hetseq_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;STAND_IN;OWN_MAIN" "" "RANKS;LABELS;LIBRARIES;INCLUDES;SOURCES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hetseq_add_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_STAND_IN AND NOT HETSEQ_USE_CUDA)
    return()
  endif()
  set(target test_${name})
  set(plain "")
  if(arg_TORCH)
    hetseq_split_by_torch(plain tensors modules ${arg_SOURCES})
    set(arg_SOURCES ${tensors} ${modules})
  endif()
  add_executable(${target} ${arg_SOURCES})
  set(compiled ${target})
  if(plain)
    hetseq_compile_apart(${target} without_tensors ${plain})
    list(APPEND compiled ${target}_without_tensors)
  endif()
  foreach(part IN LISTS compiled)
    target_include_directories(${part} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${arg_INCLUDES})
    target_link_libraries(${part} PRIVATE hetseq_flags hetseq_quick_flags GTest::gmock ${arg_LIBRARIES})
    set_target_properties(${part} PROPERTIES HETSEQ_UNITY_MOST 8)  # tests are longer, and their names less unlike
    # Designated initialisers leave the rest at its defaults.
    target_compile_options(${part} PRIVATE -Wno-missing-field-initializers)
  endforeach()
  hetseq_compile_together(${target})
  if(arg_TORCH)
    target_link_libraries(${target} PRIVATE hetseq::torch Threads::Threads)
    hetseq_reuse_torch_header(${target})
  endif()
  if(arg_STAND_IN)
    list(APPEND arg_LABELS stand-in)
    set_target_properties(${compiled} PROPERTIES HETSEQ_STAND_IN ON)
    hetseq_link_stand_ins(${target})
    add_dependencies(stand_in_tests ${target})
  endif()
  hetseq_links_torch(${target} links_torch)
  if(NOT links_torch)
    list(APPEND arg_LABELS plain)
    add_dependencies(plain_tests ${target})
  endif()

  if(NOT arg_RANKS)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${HETSEQ_TEST_TIMEOUT} LABELS "serial;${arg_LABELS}"
      ENVIRONMENT "${hetseq_test_environment}")
    hetseq_reserve_cores(${name} 1)
    return()
  endif()

  if(NOT arg_OWN_MAIN)
    target_link_libraries(${target} PRIVATE hetseq_mpi_gtest_main)
  endif()
  foreach(n IN LISTS arg_RANKS)
    # A rank waits most of the time, so two share a core.
    math(EXPR cores "(${n} + 1) / 2")
    add_test(NAME ${name}/${n}
      COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${n} ${MPIEXEC_PREFLAGS}
              $<TARGET_FILE:${target}> ${MPIEXEC_POSTFLAGS}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}/${n} PROPERTIES
      TIMEOUT ${HETSEQ_TEST_TIMEOUT}
      LABELS "mpi;ranks_${n};${arg_LABELS}"
      ENVIRONMENT "${hetseq_rank_environment}")
    hetseq_reserve_cores(${name}/${n} ${cores})
  endforeach()
endfunction()

# hetseq_link_stand_ins(<executable>): runs over the stand-ins of CUDA and NCCL (tests/stand_in).
function(hetseq_link_stand_ins target)
  set_target_properties(${target} PROPERTIES HETSEQ_STAND_IN ON)
  target_link_libraries(${target} PRIVATE
    $<TARGET_OBJECTS:hetseq_stand_in_torch> $<TARGET_OBJECTS:hetseq_stand_in_kernels> hetseq_simt hetseq::cuda)
endfunction()

# hetseq_add_script_test(<name> SCRIPT file [ARGUMENTS a...] [RANKS n] [TIMEOUT seconds] [LABELS l...])
#
# Registers a bash script as a test, run in the repository's root. It skips by exiting with 77 after printing
# 'SKIPPED: reason'. RANKS: how many cores' worth of ranks it starts at most.
function(hetseq_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCRIPT;RANKS;TIMEOUT" "ARGUMENTS;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hetseq_add_script_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_RANKS)
    set(arg_RANKS 1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${HETSEQ_TEST_TIMEOUT})
  endif()
  get_filename_component(script "${arg_SCRIPT}" ABSOLUTE)
  add_test(NAME ${name} COMMAND bash "${script}" ${arg_ARGUMENTS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${arg_TIMEOUT}
    SKIP_RETURN_CODE 77
    LABELS "script;${arg_LABELS}"
    ENVIRONMENT "${hetseq_rank_environment}")
  hetseq_reserve_cores(${name} ${arg_RANKS})
endfunction()

# Sets `out` to whether `target` links hetseq::torch, directly or through its libraries.
function(hetseq_links_torch target out)
  set(${out} FALSE PARENT_SCOPE)
  set(pending ${target})
  set(seen "")
  while(pending)
    list(POP_FRONT pending library)
    if(library MATCHES "^hetseq(_|::)torch$")
      set(${out} TRUE PARENT_SCOPE)
      return()
    endif()
    if(NOT TARGET ${library} OR library IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${library})
    foreach(property IN ITEMS LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(libraries ${library} ${property})
      if(libraries)
        string(REGEX REPLACE "\\$<LINK_ONLY:([^>]*)>" "\\1" libraries "${libraries}")
        list(APPEND pending ${libraries})
      endif()
    endforeach()
  endwhile()
endfunction()
