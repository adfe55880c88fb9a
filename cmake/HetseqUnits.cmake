# What is compiled together, and what with LibTorch's precompiled header.
include_guard(GLOBAL)

# A batch of eight takes up to 1.5 GB of memory to compile.
option(HETSEQ_UNITY "Compile several sources as one unit: half the time for all, more for one that changes" ON)
set(HETSEQ_UNITY_BATCH 8 CACHE STRING "Sources in one unit with HETSEQ_UNITY")

function(hetseq_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HETSEQ_UNITY} UNITY_BUILD_BATCH_SIZE ${HETSEQ_UNITY_BATCH})
  if(HETSEQ_UNITY)  # a class of one source may well have members of that source's own types
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Sets `out` to whether `file` includes LibTorch, directly or through files of hetseq.
function(hetseq_includes_torch file out)
  get_property(known GLOBAL PROPERTY hetseq_includes_torch_${file})
  if(NOT "${known}" STREQUAL "")
    set(${out} ${known} PARENT_SCOPE)
    return()
  endif()
  set_property(GLOBAL PROPERTY hetseq_includes_torch_${file} FALSE)  # while it is looked at
  get_filename_component(folder ${file} DIRECTORY)
  file(STRINGS ${file} lines REGEX "^ *# *include")
  foreach(line IN LISTS lines)
    if(line MATCHES "<(torch|ATen|c10)/")
      set_property(GLOBAL PROPERTY hetseq_includes_torch_${file} TRUE)
    elseif(line MATCHES "\"(.*)\"")
      foreach(place IN ITEMS ${PROJECT_SOURCE_DIR}/include ${folder} ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
        if(EXISTS ${place}/${CMAKE_MATCH_1})
          hetseq_includes_torch(${place}/${CMAKE_MATCH_1} through)
          if(through)
            set_property(GLOBAL PROPERTY hetseq_includes_torch_${file} TRUE)
          endif()
          break()
        endif()
      endforeach()
    endif()
  endforeach()
  get_property(known GLOBAL PROPERTY hetseq_includes_torch_${file})
  set(${out} ${known} PARENT_SCOPE)
endfunction()

# hetseq_split_by_torch(<plain> <tensor> FILE...): sets `plain` to those that include no LibTorch, `tensor` to the others.
function(hetseq_split_by_torch plain_out tensor_out)
  set(plain "")
  set(tensor "")
  foreach(source IN LISTS ARGN)
    get_filename_component(path ${source} ABSOLUTE)
    hetseq_includes_torch(${path} with_torch)
    if(with_torch)
      list(APPEND tensor ${source})
    else()
      list(APPEND plain ${source})
    endif()
  endforeach()
  set(${plain_out} ${plain} PARENT_SCOPE)
  set(${tensor_out} ${tensor} PARENT_SCOPE)
endfunction()

# An empty unit with LibTorch's precompiled header takes 3 s: its templates are instantiated in each. What includes
# no LibTorch is compiled apart from it, as objects of `target`.
function(hetseq_compile_plain target)
  add_library(${target}_without_tensors OBJECT ${ARGN})
  hetseq_compile_together(${target}_without_tensors)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_without_tensors>)
endfunction()
