# Finds LibTorch and defines hetseq::torch.
#
# Without CUDA the CPU libraries are linked themselves, because TorchConfig.cmake of a CUDA wheel demands the CUDA
# toolkit. Searched: HETSEQ_LIBTORCH_DIR, CMAKE_PREFIX_PATH (a wheel's site-packages, its torch folder, or a LibTorch
# archive), then the folder that jobs/setup.sh fills.
include(FindPackageHandleStandardArgs)

if(HETSEQ_USE_CUDA)
  set(hetseq_libtorch_default "${CMAKE_SOURCE_DIR}/build/libtorch-2.11.0-cuda")
else()
  set(hetseq_libtorch_default "${CMAKE_SOURCE_DIR}/build/libtorch-2.11.0-cpu")
endif()
set(HETSEQ_LIBTORCH_DIR "" CACHE PATH "Folder that holds LibTorch (include/ and lib/, or torch/include and torch/lib)")

set(hetseq_libtorch_hints ${HETSEQ_LIBTORCH_DIR} ${CMAKE_PREFIX_PATH} ${hetseq_libtorch_default})
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h
  HINTS ${hetseq_libtorch_hints} PATH_SUFFIXES include torch/include NO_DEFAULT_PATH)
if(LibTorch_INCLUDE_DIR)
  get_filename_component(LibTorch_ROOT "${LibTorch_INCLUDE_DIR}" DIRECTORY)
endif()
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS "${LibTorch_ROOT}/lib" NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 HINTS "${LibTorch_ROOT}/lib" NO_DEFAULT_PATH)

find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE
  "LibTorch was not found. Run jobs/setup.sh, which installs it from PyPI, or give your site's own: -DCMAKE_PREFIX_PATH=/path/to/libtorch")

if(LibTorch_FOUND AND NOT TARGET hetseq::torch)
  add_library(hetseq_torch INTERFACE)
  add_library(hetseq::torch ALIAS hetseq_torch)
  target_include_directories(hetseq_torch SYSTEM INTERFACE
    "${LibTorch_INCLUDE_DIR}" "${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
  target_link_libraries(hetseq_torch INTERFACE "${LibTorch_CPU_LIBRARY}" "${LibTorch_C10_LIBRARY}")
  # libtorch_cpu.so of a CUDA wheel needs libcudart and libcupti, which lie beside torch in nvidia/*/lib.
  file(GLOB LibTorch_RUNTIME_DIRS "${LibTorch_ROOT}/../nvidia/*/lib")
  foreach(folder IN LISTS LibTorch_RUNTIME_DIRS)
    target_link_options(hetseq_torch INTERFACE "LINKER:-rpath-link,${folder}")
  endforeach()
endif()
