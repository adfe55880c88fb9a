# Everything hetseq links, each found once, with an error that says what to do.
include_guard(GLOBAL)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI REQUIRED COMPONENTS C CXX)
# The C interface alone: Open MPI 5 has no libmpi_cxx any more.
add_library(hetseq_mpi INTERFACE)
add_library(hetseq::mpi ALIAS hetseq_mpi)
target_link_libraries(hetseq_mpi INTERFACE MPI::MPI_C)
target_compile_definitions(hetseq_mpi INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)

set(HDF5_PREFER_PARALLEL TRUE)
find_package(HDF5 REQUIRED COMPONENTS C)
if(NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR
    "The HDF5 found is serial (${HDF5_C_LIBRARIES}); hetseq reads corpora in parallel.\n"
    "Install libhdf5-openmpi-dev, load your site's hdf5 module built with MPI, or point HDF5_ROOT at a parallel build.")
endif()
add_library(hetseq_hdf5 INTERFACE)
add_library(hetseq::hdf5 ALIAS hetseq_hdf5)
target_include_directories(hetseq_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(hetseq_hdf5 INTERFACE ${HDF5_C_LIBRARIES} MPI::MPI_C)

find_package(Boost 1.71 REQUIRED COMPONENTS program_options)
find_package(nlohmann_json 3.9 REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibTorch REQUIRED)
