# The CUDA side of hetseq::torch, and hetseq::cuda for units that call CUDA or NCCL themselves. Included by FindLibTorch
# with HETSEQ_USE_CUDA.
include_guard(GLOBAL)

# LibTorch's device libraries, and the major version of CUDA that they were built with.
find_library(LibTorch_CUDA_LIBRARY torch_cuda HINTS "${LibTorch_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda HINTS "${LibTorch_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE)
set(libtorch_cudart "")
if(LibTorch_C10_CUDA_LIBRARY)
  hetseq_needed_libraries("${LibTorch_C10_CUDA_LIBRARY}" libtorch_cudart)
  list(FILTER libtorch_cudart INCLUDE REGEX "^libcudart")
endif()
string(REGEX MATCH "[0-9]+$" libtorch_cuda_major "${libtorch_cudart}")

# Sets `out` to the version of an nvcc ("13.0"), empty where it does not run.
function(hetseq_nvcc_version nvcc out)
  execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE banner ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" _ "${banner}")
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# The compiler: the first of LibTorch's major version, as jobs/cuda-compiler.sh looks for it, or the first at all.
find_program(HETSEQ_NVCC nvcc PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(HETSEQ_NVCC)
if(NOT CMAKE_CUDA_COMPILER)
  foreach(nvcc IN ITEMS "$ENV{CUDACXX}" "$ENV{CUDA_HOME}/bin/nvcc" "$ENV{CUDA_PATH}/bin/nvcc" "${HETSEQ_NVCC}"
      /usr/local/cuda/bin/nvcc "${PROJECT_SOURCE_DIR}/build/cuda-${libtorch_cuda_major}/bin/nvcc")
    hetseq_nvcc_version("${nvcc}" nvcc_version)
    if(nvcc_version AND (NOT CMAKE_CUDA_COMPILER OR nvcc_version MATCHES "^${libtorch_cuda_major}\\."))
      set(CMAKE_CUDA_COMPILER "${nvcc}")
      if(nvcc_version MATCHES "^${libtorch_cuda_major}\\.")
        break()
      endif()
    endif()
  endforeach()
endif()
set(nvcc_version "")
if(CMAKE_CUDA_COMPILER)
  hetseq_nvcc_version("${CMAKE_CUDA_COMPILER}" nvcc_version)
endif()
hetseq_require_cuda("${CMAKE_CUDA_COMPILER}" "${nvcc_version}")
if(NOT CMAKE_CUDA_ARCHITECTURES)
  hetseq_cuda_architectures("${nvcc_version}" architectures)
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "Compute capabilities to compile for" FORCE)
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc 12 and later compile C++20.
set(CMAKE_CUDA_STANDARD 20)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
find_package(CUDAToolkit REQUIRED)

hetseq_require_same_cuda("${libtorch_cudart}" "${CUDAToolkit_VERSION}")
target_link_libraries(hetseq_torch INTERFACE "${LibTorch_C10_CUDA_LIBRARY}")
# A target with the property HETSEQ_STAND_IN is a test that brings these libraries' stand-ins (tests/stand_in).
set(stands_in $<BOOL:$<TARGET_PROPERTY:HETSEQ_STAND_IN>>)
# libtorch_cuda.so registers its kernels when it is loaded, so it is linked even where no symbol of it is named.
target_link_options(hetseq_torch INTERFACE
  $<$<NOT:${stands_in}>:LINKER:--no-as-needed> $<$<NOT:${stands_in}>:${LibTorch_CUDA_LIBRARY}>
  $<$<NOT:${stands_in}>:LINKER:--as-needed>)

# The NCCL that LibTorch loads: two in one process answer for each other's symbols. PyPI's lies beside torch.
find_path(NCCL_INCLUDE_DIR nccl.h
  HINTS "${LibTorch_ROOT}/../nvidia/nccl/include" "${LibTorch_ROOT}/include" ENV NCCL_ROOT ENV NCCL_HOME
  PATHS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include NO_CACHE)
find_library(NCCL_LIBRARY NAMES libnccl.so.2 nccl
  HINTS "${LibTorch_ROOT}/../nvidia/nccl/lib" "${LibTorch_ROOT}/lib" ENV NCCL_ROOT ENV NCCL_HOME
  PATHS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib NO_CACHE)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  message(FATAL_ERROR
    "NCCL was not found (nccl.h and libnccl.so.2).\n"
    "Run jobs/setup.sh --cuda, which installs the one that PyPI's LibTorch loads, or set NCCL_ROOT.")
endif()
file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" nccl_version REGEX "define NCCL_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" nccl_version "${nccl_version}")
string(REPLACE ";" "." NCCL_VERSION "${nccl_version}")
# Apart from hetseq::torch: units that need no CUDA header are compiled exactly as without CUDA, and ccache knows them.
target_include_directories(hetseq_cuda SYSTEM INTERFACE "${NCCL_INCLUDE_DIR}")
target_link_libraries(hetseq_cuda INTERFACE
  $<IF:${stands_in},hetseq_stand_in_cudart,CUDA::cudart> $<IF:${stands_in},hetseq_stand_in_nccl,${NCCL_LIBRARY}>)

# What profilers show of hetseq's own work.
find_path(NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} "${LibTorch_ROOT}/../nvidia/nvtx/include" "${LibTorch_ROOT}/../nvidia/cu13/include" NO_CACHE)
if(NOT NVTX_INCLUDE_DIR)
  message(FATAL_ERROR
    "NVTX was not found (nvtx3/nvToolsExt.h).\n"
    "Load a CUDA module that has it. (jobs/setup.sh --cuda installs it beside PyPI's LibTorch.)")
endif()
message(STATUS "CUDA ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, NCCL ${NCCL_VERSION} (${NCCL_LIBRARY})")
