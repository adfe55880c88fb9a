# cmake --install: a prefix that can be moved.
#
#   bin/hetseq                  the small program that users call
#   libexec/hetseq/hetseq-program       the whole program that it becomes; finds its libraries by $ORIGIN
#   lib/libhetseq.so, include/hetseq/, lib/cmake/hetseq/
#                               for programs with parts of their own: find_package(hetseq)
#   lib/hetseq/                 LibTorch's shared objects, unless LibTorch is the site's own
#   lib/hetseq/python/hetseq/   the Python package, for PYTHONPATH; its library, lib/libhetseq_python.so in there, is for
#                               the torch of the version in libhetseq_python.json
#   share/hetseq/inputs/        the example inputs
#   share/doc/hetseq/           docs/
#   share/man/man1/hetseq.1     as the program itself writes it
#   share/bash-completion/completions/hetseq
#   share/modulefiles/hetseq/   VERSION for Environment Modules and Lmod, VERSION.lua for Lmod
#
# With HETSEQ_PYTHON_WHEEL just what python/build_backend.py puts into a wheel: bin/ and lib/ of the package.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(HetseqHeaders)
include(HetseqModules)

# jobs/setup.sh's LibTorch lies in build/, which may go away; a site's own stays where it is.
string(FIND "${LibTorch_ROOT}/" "${PROJECT_SOURCE_DIR}/build/" own_libtorch_at)
if(own_libtorch_at EQUAL 0)
  set(own_libtorch ON)
else()
  set(own_libtorch OFF)
endif()
option(HETSEQ_INSTALL_LIBTORCH "Install LibTorch's shared objects beside the program" ${own_libtorch})
option(HETSEQ_PYTHON_WHEEL "Install just the program and the libraries, for a Python package beside torch" OFF)

# What hetseq links and is not installed with it: a site's MPI, HDF5, Boost and others, found where they were linked.
set(linked ${MPI_C_LIBRARIES} ${HDF5_C_LIBRARIES} ${ZLIB_LIBRARIES} ${HETSEQ_SENTENCEPIECE_LIBRARY}
  ${HETSEQ_UTF8PROC_LIBRARY})
foreach(target IN ITEMS spdlog::spdlog fmt::fmt)
  if(TARGET ${target})
    get_target_property(library ${target} LOCATION)
    list(APPEND linked ${library})
  endif()
endforeach()
set(libtorch ${LibTorch_CPU_LIBRARY} ${LibTorch_C10_LIBRARY} ${LibTorch_CUDA_LIBRARY} ${LibTorch_C10_CUDA_LIBRARY})
if(NOT HETSEQ_INSTALL_LIBTORCH)
  list(APPEND linked ${libtorch} ${NCCL_LIBRARY})
endif()
set(folders ${Boost_LIBRARY_DIRS})
foreach(library IN LISTS linked)
  get_filename_component(folder "${library}" DIRECTORY)
  list(APPEND folders ${folder})
endforeach()
list(REMOVE_ITEM folders ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
list(REMOVE_DUPLICATES folders)

# What Python looks at before it loads libhetseq_python.so: another torch has other symbols.
set(cuda_version null)
if(HETSEQ_USE_CUDA)
  set(cuda_version "\"${CUDAToolkit_VERSION}\"")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/lib/libhetseq_python.json CONTENT
  "{\"hetseq\": \"${PROJECT_VERSION}\", \"torch\": \"${LibTorch_VERSION}\", \"cuda\": ${cuda_version}}\n")

if(HETSEQ_PYTHON_WHEEL)
  set(beside_torch "$ORIGIN/../../torch/lib" ${folders})
  set_target_properties(hetseq PROPERTIES INSTALL_RPATH "${folders}")
  set_target_properties(hetseq_whole PROPERTIES INSTALL_RPATH "$ORIGIN/../../../torch/lib;${folders}")
  set_target_properties(hetseq_shared hetseq_python PROPERTIES INSTALL_RPATH "$ORIGIN;${beside_torch}")
  install(TARGETS hetseq RUNTIME DESTINATION bin)
  install(TARGETS hetseq_whole RUNTIME DESTINATION libexec/hetseq)
  install(TARGETS hetseq_shared hetseq_python LIBRARY DESTINATION lib NAMELINK_SKIP)
  install(FILES ${PROJECT_BINARY_DIR}/lib/libhetseq_python.json DESTINATION lib)
  return()
endif()

set_target_properties(hetseq PROPERTIES INSTALL_RPATH "${folders}")
install(TARGETS hetseq RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set_target_properties(hetseq_whole PROPERTIES INSTALL_RPATH "$ORIGIN/../../${CMAKE_INSTALL_LIBDIR}/hetseq;${folders}")
install(TARGETS hetseq_whole RUNTIME DESTINATION libexec/hetseq)

# find_package(hetseq)
set_target_properties(hetseq_shared PROPERTIES INSTALL_RPATH "$ORIGIN/hetseq;${folders}")
install(TARGETS hetseq_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
hetseq_public_headers(${PROJECT_SOURCE_DIR}/docs/extending.md ${PROJECT_SOURCE_DIR}/include headers)
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES include/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hetseq)
configure_package_config_file(cmake/hetseqConfig.cmake.in ${PROJECT_BINARY_DIR}/package/hetseqConfig.cmake.in
  INSTALL_DESTINATION ${package_dir})
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/package/hetseqConfig.cmake
  INPUT ${PROJECT_BINARY_DIR}/package/hetseqConfig.cmake.in)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/hetseqConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/hetseqConfig.cmake ${PROJECT_BINARY_DIR}/package/hetseqConfigVersion.cmake
  cmake/HetseqChecks.cmake DESTINATION ${package_dir})

# Where LibTorch is a torch of Python, its own libraries are loaded before ours.
set(python_dir ${CMAKE_INSTALL_LIBDIR}/hetseq/python)
set_target_properties(hetseq_python PROPERTIES INSTALL_RPATH "$ORIGIN/../../../..;$ORIGIN/../../..;${folders}")
install(DIRECTORY python/hetseq DESTINATION ${python_dir} PATTERN __pycache__ EXCLUDE)
install(TARGETS hetseq_python LIBRARY DESTINATION ${python_dir}/hetseq/lib)
install(FILES ${PROJECT_BINARY_DIR}/lib/libhetseq_python.json DESTINATION ${python_dir}/hetseq/lib)

install(DIRECTORY inputs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hetseq/inputs)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Each with what they share, so that one file is all that is copied.
file(READ jobs/job.sh shared)
foreach(script IN ITEMS slurm uge pbs lsf local)
  file(READ jobs/${script}.sh text)
  string(REGEX REPLACE "# What all job scripts share[^\n]*\n# shellcheck [^\n]*\nsource ./job.sh\n" "" text "${text}")
  file(WRITE ${PROJECT_BINARY_DIR}/jobs/${script}.sh "${text}${shared}")
  install(PROGRAMS ${PROJECT_BINARY_DIR}/jobs/${script}.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/hetseq/jobs)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS jobs/${script}.sh jobs/job.sh)
endforeach()
# Written when hetseq was linked, where it can run.
install(FILES ${PROJECT_BINARY_DIR}/documents/hetseq.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
# bash-completion finds a command's file by its name; the one file completes hetseq after launchers as well.
foreach(command hetseq mpirun mpiexec srun)
  install(FILES ${PROJECT_BINARY_DIR}/documents/hetseq.bash RENAME ${command}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/documents/_hetseq
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
install(FILES ${PROJECT_BINARY_DIR}/documents/hetseq.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
configure_file(cmake/install_extras.cmake.in install_extras.cmake @ONLY)
install(SCRIPT "${PROJECT_BINARY_DIR}/install_extras.cmake")
