# What a site's libraries must offer: each check stops the configuration with the problem, why, and what to do.
# Plain functions of values, so that tests/build can call them without a machine that has the fault.
include_guard(GLOBAL)

set(HETSEQ_LIBTORCH_MINIMUM 2.7)

# Sets `out` to the names of the shared libraries that `library` asks the loader for.
function(hetseq_needed_libraries library out)
  execute_process(COMMAND ${CMAKE_READELF} -d "${library}" OUTPUT_VARIABLE dynamic ERROR_QUIET)
  string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*\\[[^]\n]+\\]" lines "${dynamic}")
  list(TRANSFORM lines REPLACE ".*\\[([^]]+)\\]" "\\1")
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

# Sets `out` to the name under which the loader knows `library`.
function(hetseq_library_soname library out)
  execute_process(COMMAND ${CMAKE_READELF} -d "${library}" OUTPUT_VARIABLE dynamic ERROR_QUIET)
  string(REGEX MATCH "\\(SONAME\\)[^\n]*\\[([^]\n]+)\\]" _ "${dynamic}")
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# Sets `out` to LibTorch's version as its headers give it, empty where they do not.
function(hetseq_libtorch_version include_dir out)
  set(version "")
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS "${include_dir}/${header}")
      file(READ "${include_dir}/${header}" text)
      if(text MATCHES "TORCH_VERSION_MAJOR ([0-9]+).*TORCH_VERSION_MINOR ([0-9]+).*TORCH_VERSION_PATCH ([0-9]+)")
        set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
      endif()
    endif()
  endforeach()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

function(hetseq_require_libtorch_version version root)
  if(NOT version)
    message(FATAL_ERROR
      "The version of the LibTorch in ${root} cannot be read (its torch/version.h is missing).\n"
      "Reinstall it, or leave HETSEQ_LIBTORCH_DIR and CMAKE_PREFIX_PATH unset and run jobs/setup.sh.")
  endif()
  if(version VERSION_LESS HETSEQ_LIBTORCH_MINIMUM)
    message(FATAL_ERROR
      "The LibTorch in ${root} is too old (${version}; hetseq needs ${HETSEQ_LIBTORCH_MINIMUM}).\n"
      "Load or name a newer one (-DCMAKE_PREFIX_PATH=...), or take this one off CMAKE_PREFIX_PATH and run jobs/setup.sh, which installs one into build/.")
  endif()
endfunction()

# LibTorch built with the old C++ ABI of GCC has no symbol that takes a std::__cxx11::string.
function(hetseq_require_libtorch_abi c10_library)
  file(STRINGS "${c10_library}" symbols REGEX "^_ZN3c105Error.*__cxx11" LIMIT_COUNT 1)
  if(NOT symbols)
    message(FATAL_ERROR
      "${c10_library} was built with the other C++ ABI (_GLIBCXX_USE_CXX11_ABI=0), with which hetseq cannot link.\n"
      "Take LibTorch's 'cxx11 ABI' archive or PyPI's torch, ${HETSEQ_LIBTORCH_MINIMUM} or later (jobs/setup.sh installs one).")
  endif()
endfunction()

# Open MPI's mpicc is there without its headers where only openmpi-bin is installed; FindMPI would fail unexplained.
# `folders` is the output of `mpicc --showme:incdirs`.
function(hetseq_require_mpi_headers mpicc folders)
  separate_arguments(folders UNIX_COMMAND "${folders}")
  foreach(folder IN LISTS folders)
    if(NOT IS_DIRECTORY "${folder}")
      message(FATAL_ERROR
        "The headers of Open MPI are missing (${mpicc} names the folder ${folder}, which does not exist).\n"
        "Install libopenmpi-dev, load your site's module (module load openmpi), or set MPI_HOME.")
    endif()
  endforeach()
endfunction()

function(hetseq_require_mpi found version)
  if(NOT found)
    message(FATAL_ERROR
      "No MPI was found (mpicc is not on PATH, or cannot compile).\n"
      "Install libopenmpi-dev and openmpi-bin, load your site's module (module load openmpi), or set MPI_HOME.")
  endif()
  if(version VERSION_LESS 3.0)
    message(FATAL_ERROR
      "This MPI implements MPI ${version}; hetseq needs MPI 3 (shared windows, non-blocking collectives).\n"
      "Load a newer module, for example Open MPI 4.1 or later.")
  endif()
endfunction()

# An Open MPI configured without MPI-IO or without shared windows compiles hetseq but cannot run it.
# `components` is the output of `ompi_info --parsable`.
function(hetseq_require_openmpi_components components)
  if(NOT components MATCHES "mca:io:(ompio|romio[0-9]*):")
    message(FATAL_ERROR
      "This Open MPI was built without MPI-IO (no 'io' component), which parallel HDF5 needs.\n"
      "Use a build without --disable-io-romio / --disable-mpi-io; 'ompi_info | grep \"MCA io\"' lists what is there.")
  endif()
  if(NOT components MATCHES "mca:osc:sm:")
    message(FATAL_ERROR
      "This Open MPI was built without shared-memory windows (no 'osc sm' component), which hold the block cache.\n"
      "Use a build that has them; 'ompi_info | grep \"MCA osc\"' lists what is there.")
  endif()
endfunction()

function(hetseq_require_parallel_hdf5 found is_parallel version libraries)
  if(NOT found OR NOT is_parallel)  # look again when this is mended
    get_cmake_property(cached CACHE_VARIABLES)
    list(FILTER cached INCLUDE REGEX "^HDF5_")
    list(REMOVE_ITEM cached HDF5_ROOT)
    foreach(variable IN LISTS cached)
      unset(${variable} CACHE)
    endforeach()
  endif()
  set(advice "Install libhdf5-openmpi-dev, load your site's hdf5 module built with MPI, or point HDF5_ROOT at a parallel build.")
  if(NOT found)
    message(FATAL_ERROR "No HDF5 was found (neither h5pcc nor hdf5.h).\n${advice}")
  endif()
  if(NOT is_parallel)
    message(FATAL_ERROR "The HDF5 found is serial (${libraries}); hetseq reads corpora in parallel.\n${advice}")
  endif()
  if(version VERSION_LESS 1.10.7)  # H5Pset_file_locking
    message(FATAL_ERROR "The HDF5 found is ${version}; hetseq needs 1.10.7 or later.\n${advice}")
  endif()
endfunction()

function(hetseq_require_library found name version debian conda)
  if(NOT found)
    message(FATAL_ERROR
      "No ${name} ${version} or later was found.\n"
      "Install ${debian} (Debian) or ${conda} (conda-forge), load your site's module, or add its folder to CMAKE_PREFIX_PATH.")
  endif()
endfunction()

# The language is checked by compiling; this says why that would fail.
function(hetseq_require_compiler id version)
  if(id STREQUAL "GNU" AND version VERSION_LESS 12 OR id STREQUAL "Clang" AND version VERSION_LESS 14)
    message(FATAL_ERROR
      "The compiler is ${id} ${version}; hetseq needs g++ 12 or clang 14 or later (C++20).\n"
      "Load a newer module (module load gcc) or name one: -DCMAKE_CXX_COMPILER=g++-12.")
  endif()
endfunction()

# `hdf5_needs` and `mpi_needs`: the libmpi that HDF5 loads and the one that hetseq links.
function(hetseq_require_same_mpi hdf5_needs mpi_needs)
  if(hdf5_needs AND mpi_needs AND NOT hdf5_needs STREQUAL mpi_needs)
    message(FATAL_ERROR
      "HDF5 was built with another MPI (it loads ${hdf5_needs}, hetseq would load ${mpi_needs}).\n"
      "Load an hdf5 module built with the MPI in use, or point HDF5_ROOT at one.")
  endif()
endfunction()

function(hetseq_require_cuda compiler version)
  if(NOT compiler)
    message(FATAL_ERROR
      "HETSEQ_USE_CUDA is on, but no nvcc was found.\n"
      "Load your site's CUDA module, set CMAKE_CUDA_COMPILER, or build the 'cpu' preset.")
  endif()
  if(version VERSION_LESS 12.0)
    message(FATAL_ERROR
      "nvcc ${version} is too old (hetseq needs CUDA 12 or 13, the one of its LibTorch).\n"
      "Load a newer CUDA module or set CMAKE_CUDA_COMPILER.")
  endif()
endfunction()

# `libtorch_cudart` is the libcudart that LibTorch loads (empty: it has no CUDA), `toolkit_version` that of nvcc.
function(hetseq_require_same_cuda libtorch_cudart toolkit_version)
  if(NOT libtorch_cudart)
    message(FATAL_ERROR
      "HETSEQ_USE_CUDA is on, but this LibTorch was built without CUDA (libc10_cuda.so is missing).\n"
      "Run jobs/setup.sh --cuda, or name a LibTorch with CUDA: -DCMAKE_PREFIX_PATH=/path/to/libtorch.")
  endif()
  string(REGEX MATCH "[0-9]+$" theirs "${libtorch_cudart}")
  string(REGEX MATCH "^[0-9]+" ours "${toolkit_version}")
  if(NOT theirs STREQUAL ours)
    message(FATAL_ERROR
      "LibTorch was built with CUDA ${theirs}, nvcc is of CUDA ${ours} (${toolkit_version}); both must be of one major version.\n"
      "Load the CUDA ${theirs} module, set CMAKE_CUDA_COMPILER, or take a LibTorch built with CUDA ${ours}.")
  endif()
endfunction()

# Sets `out` to the architectures to compile for: GPUs that clusters have and this nvcc knows (60 P100, 70 V100, 75 T4,
# 80 A100, 90 H100). The last also carries PTX, which newer GPUs compile when they load it; PTX of the others would only
# make the program larger.
function(hetseq_cuda_architectures version out)
  if(version VERSION_LESS 13.0)
    set(${out} "60-real;70-real;80-real;90" PARENT_SCOPE)
  else()
    set(${out} "75-real;80-real;90" PARENT_SCOPE)
  endif()
endfunction()
