# The layers of docs/architecture.md as libraries, and their tests.
include_guard(GLOBAL)

add_library(hetseq_flags INTERFACE)
target_compile_options(hetseq_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<BOOL:${HETSEQ_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
target_include_directories(hetseq_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)

# Tensors cost 17 s of compiling a unit without a precompiled header, 7 s with this one and 14 s with one of
# <torch/torch.h>. Units still include what they use.
add_library(hetseq_torch_pch OBJECT ${CMAKE_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(hetseq_torch_pch PUBLIC hetseq_flags hetseq::torch Threads::Threads)
target_precompile_headers(hetseq_torch_pch PRIVATE
  <ATen/ATen.h> <torch/csrc/autograd/custom_function.h> <torch/csrc/autograd/variable.h> <torch/nn/module.h>
  <map> <memory> <string> <vector>)

# hetseq_add_layer(<name> [TORCH] SOURCES f... [LIBRARIES t...] [PRIVATE_LIBRARIES t...])
#
# Defines the static library hetseq_<name> from src/<name>. TORCH: its units use tensors. Sources for devices (.cu,
# nccl_communicator.cpp) are listed where HETSEQ_USE_CUDA, their stand-ins otherwise; a layer that has some names
# hetseq::cuda among its PRIVATE_LIBRARIES (nothing in a build without CUDA).
function(hetseq_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;LIBRARIES;PRIVATE_LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hetseq_add_layer(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_library(hetseq_${name} STATIC ${arg_SOURCES})
  target_link_libraries(hetseq_${name} PUBLIC hetseq_flags ${arg_LIBRARIES} PRIVATE ${arg_PRIVATE_LIBRARIES})
  if(arg_TORCH)
    target_link_libraries(hetseq_${name} PUBLIC hetseq::torch Threads::Threads)
    target_precompile_headers(hetseq_${name} REUSE_FROM hetseq_torch_pch)
  endif()
endfunction()
