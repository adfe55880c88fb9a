# The layers of docs/architecture.md as libraries, and their tests.
include_guard(GLOBAL)
include(HetseqUnits)

add_library(hetseq_flags INTERFACE)
target_compile_options(hetseq_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<AND:$<BOOL:${HETSEQ_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr> $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)  # profilers show lines
target_include_directories(hetseq_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)  # private headers, by their path from there

# Two precompiled headers: what units include of the standard library, and the same with LibTorch's tensors and all their
# operators. Without the second one these would cost 19 s of a unit. Even an empty unit takes 1.3 s with it, because
# LibTorch's templates are instantiated in each. One of <ATen/core/Tensor.h> alone makes an empty unit faster, but a unit
# of 16 sources takes 20 s with it where it takes 14: it includes much of <ATen/ATen.h> by itself. Sources include
# operators one by one. <torch/nn/module.h> would be dear, so a layer's sources that include others of torch's headers are
# compiled apart. The compiler takes both with -Og too.
set(hetseq_standard_headers
  <algorithm> <array> <atomic> <chrono> <condition_variable> <deque> <filesystem> <fstream> <functional> <future> <limits>
  <list> <map> <memory> <mutex> <numeric> <optional> <set> <span> <stdexcept> <string> <string_view> <thread>
  <unordered_map> <utility> <variant> <vector>)
add_library(hetseq_standard_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/standard_pch.cpp)
target_link_libraries(hetseq_standard_pch PRIVATE hetseq_flags)
target_precompile_headers(hetseq_standard_pch PRIVATE ${hetseq_standard_headers})
add_library(hetseq_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(hetseq_torch_pch PRIVATE hetseq_flags hetseq::torch Threads::Threads)
target_precompile_headers(hetseq_torch_pch PRIVATE <ATen/ATen.h> ${hetseq_standard_headers})

# hetseq_reuse_torch_header(<target>): the precompiled header of LibTorch for an executable or its objects. It is built
# with -fPIC; with an executable's -fPIE the compiler would not use it.
function(hetseq_reuse_torch_header target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM hetseq_torch_pch)
endfunction()

# For what reads words, agrees and writes reports, and for tests, which spend their time in the layers: it is compiled in
# two thirds of the time so.
add_library(hetseq_quick_flags INTERFACE)
target_compile_options(hetseq_quick_flags INTERFACE $<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANGUAGE:CXX>>:-Og>)

# hetseq_add_layer(<name> [TORCH] [QUICK] [SOURCES f...] [WITHOUT f...] [CUDA f... NO_CUDA f...] [LIBRARIES t...] [PRIVATE_LIBRARIES t...])
#
# Defines the static library hetseq_<name> from src/<name>: of SOURCES where they are given, else of all sources there and
# in folders below, WITHOUT some. TORCH: it has units that use tensors. QUICK: it holds no loop that counts, and is
# compiled with hetseq_quick_flags. CUDA: sources for devices, taken with HETSEQ_USE_CUDA; NO_CUDA: their stand-ins
# otherwise.
function(hetseq_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;QUICK" "" "SOURCES;WITHOUT;CUDA;NO_CUDA;LIBRARIES;PRIVATE_LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hetseq_add_layer(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    file(GLOB_RECURSE arg_SOURCES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
    list(REMOVE_ITEM arg_SOURCES ${arg_WITHOUT} ${arg_CUDA} ${arg_NO_CUDA})
  endif()
  if(HETSEQ_USE_CUDA)
    set(cuda_sources ${arg_CUDA})
  else()
    set(cuda_sources "")
    list(APPEND arg_SOURCES ${arg_NO_CUDA})
  endif()

  set(target hetseq_${name})
  if(arg_QUICK)
    list(APPEND arg_PRIVATE_LIBRARIES hetseq_quick_flags)
  endif()
  set(libraries hetseq_flags ${arg_LIBRARIES} ${arg_PRIVATE_LIBRARIES})
  set(plain "")
  set(module "")
  set(sources ${arg_SOURCES})
  if(arg_TORCH)
    hetseq_split_by_torch(plain sources module ${arg_SOURCES})
  endif()
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC hetseq_flags ${arg_LIBRARIES} PRIVATE ${arg_PRIVATE_LIBRARIES})
  hetseq_compile_together(${target})
  if(arg_TORCH)
    target_link_libraries(${target} PUBLIC hetseq::torch Threads::Threads)
    target_precompile_headers(${target} REUSE_FROM hetseq_torch_pch)
  else()
    target_precompile_headers(${target} REUSE_FROM hetseq_standard_pch)
  endif()
  if(plain)
    hetseq_compile_apart(${target} without_tensors ${plain})
    target_link_libraries(${target}_without_tensors PRIVATE ${libraries})
    target_precompile_headers(${target}_without_tensors REUSE_FROM hetseq_standard_pch)
  endif()
  if(module)
    hetseq_compile_apart(${target} with_modules ${module})
    target_link_libraries(${target}_with_modules PRIVATE ${libraries} hetseq::torch Threads::Threads)
    target_precompile_headers(${target}_with_modules REUSE_FROM hetseq_torch_pch)
  endif()
  if(cuda_sources)
    # By themselves: no other unit is compiled otherwise than in a build without CUDA, and ccache knows it.
    add_library(${target}_cuda OBJECT ${cuda_sources})
    hetseq_compile_together(${target}_cuda)
    target_link_libraries(${target}_cuda PRIVATE ${libraries} hetseq::torch hetseq::cuda Threads::Threads)
    target_precompile_headers(${target}_cuda REUSE_FROM hetseq_torch_pch)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_cuda>)
    target_link_libraries(${target} INTERFACE $<LINK_ONLY:hetseq::cuda>)
  endif()
  foreach(part IN ITEMS ${target} ${target}_without_tensors ${target}_with_modules ${target}_cuda)
    if(TARGET ${part})
      set_property(GLOBAL APPEND PROPERTY hetseq_layer_objects $<TARGET_OBJECTS:${part}>)
    endif()
  endforeach()
endfunction()
