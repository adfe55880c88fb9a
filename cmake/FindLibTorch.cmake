# Finds LibTorch and defines hetseq::torch, and hetseq::cuda (empty without CUDA).
#
# The libraries are linked themselves, with and without CUDA: TorchConfig.cmake of a CUDA build demands the whole CUDA
# toolkit even where only the CPU libraries are used, and sets flags of every target.
# Searched: HETSEQ_LIBTORCH_DIR alone where it is given; else CMAKE_PREFIX_PATH (a site-packages folder, its torch
# folder, torch.utils.cmake_prefix_path, or a LibTorch archive), then the folder that jobs/setup.sh fills.
include(HetseqChecks)

if(NOT "$ENV{HETSEQ_LIBTORCH_VERSION}" STREQUAL "")
  set(hetseq_libtorch_default "$ENV{HETSEQ_LIBTORCH_VERSION}")
else()
  set(hetseq_libtorch_default 2.11.0)
endif()
set(HETSEQ_LIBTORCH_VERSION "${hetseq_libtorch_default}" CACHE STRING "Which of the LibTorches that jobs/setup.sh installed")
if(NOT "$ENV{HETSEQ_LIBTORCH_VERSION}" STREQUAL "" AND NOT HETSEQ_LIBTORCH_VERSION STREQUAL hetseq_libtorch_default)
  message(WARNING
    "This folder was configured for LibTorch ${HETSEQ_LIBTORCH_VERSION}, and the variable HETSEQ_LIBTORCH_VERSION says ${hetseq_libtorch_default}.\n"
    "Configure another folder, or this one with -DHETSEQ_LIBTORCH_VERSION=${hetseq_libtorch_default}.")
endif()
set(hetseq_own_libtorch "${PROJECT_SOURCE_DIR}/build/libtorch-${HETSEQ_LIBTORCH_VERSION}")
set(HETSEQ_LIBTORCH_DIR "" CACHE PATH "Folder that holds LibTorch (include/ and lib/, or torch/include and torch/lib)")

if(HETSEQ_LIBTORCH_DIR)
  set(hetseq_libtorch_hints "${HETSEQ_LIBTORCH_DIR}")
else()
  file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" hetseq_libtorch_environment)
  set(hetseq_libtorch_hints ${CMAKE_PREFIX_PATH} ${hetseq_libtorch_environment} ${hetseq_own_libtorch})
endif()
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  HINTS ${hetseq_libtorch_hints} PATH_SUFFIXES include torch/include ../../include NO_DEFAULT_PATH NO_CACHE)
if(LibTorch_INCLUDE_DIR)
  get_filename_component(LibTorch_INCLUDE_DIR "${LibTorch_INCLUDE_DIR}" ABSOLUTE)
  get_filename_component(LibTorch_ROOT "${LibTorch_INCLUDE_DIR}" DIRECTORY)
endif()
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS "${LibTorch_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_C10_LIBRARY c10 HINTS "${LibTorch_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE)

if(NOT LibTorch_INCLUDE_DIR OR NOT LibTorch_CPU_LIBRARY OR NOT LibTorch_C10_LIBRARY)
  list(JOIN hetseq_libtorch_hints ", " hetseq_libtorch_places)
  message(FATAL_ERROR
    "No LibTorch was found in ${hetseq_libtorch_places}.\n"
    "Run jobs/setup.sh, which installs it into build/, or name your site's own: -DCMAKE_PREFIX_PATH=/path/to/libtorch.")
endif()

hetseq_libtorch_version("${LibTorch_INCLUDE_DIR}" LibTorch_VERSION)
hetseq_require_libtorch_version("${LibTorch_VERSION}" "${LibTorch_ROOT}")
hetseq_require_libtorch_abi("${LibTorch_C10_LIBRARY}")
set(LibTorch_FOUND TRUE)
message(STATUS "Found LibTorch: ${LibTorch_ROOT} (version ${LibTorch_VERSION})")

add_library(hetseq_torch INTERFACE)
add_library(hetseq::torch ALIAS hetseq_torch)
target_include_directories(hetseq_torch SYSTEM INTERFACE
  "${LibTorch_INCLUDE_DIR}" "${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
target_link_libraries(hetseq_torch INTERFACE "${LibTorch_CPU_LIBRARY}" "${LibTorch_C10_LIBRARY}")
# What LibTorch's wheel loads (libcudart, libcupti) lies beside torch; its own RPATH finds it when it runs.
file(GLOB LibTorch_RUNTIME_DIRS "${LibTorch_ROOT}/../nvidia/*/lib")
foreach(folder IN LISTS LibTorch_RUNTIME_DIRS)
  target_link_options(hetseq_torch INTERFACE "LINKER:-rpath-link,${folder}")
endforeach()

add_library(hetseq_cuda INTERFACE)
add_library(hetseq::cuda ALIAS hetseq_cuda)
if(HETSEQ_USE_CUDA)
  include(HetseqCuda)
endif()
