# What a job needs before hetseq's own module: the mpirun of the MPI that hetseq was built with. Sets HETSEQ_MODULES
# (module names) and hetseq_mpi_bindir (mpirun's folder, where no module brings it and it is none of the system's), and
# the modulefiles' lines of both.
include_guard(GLOBAL)

set(loaded_mpi "")
string(REPLACE ":" ";" loaded "$ENV{LOADEDMODULES}")
foreach(module IN LISTS loaded)
  string(TOLOWER "${module}" lower)
  if(lower MATCHES "mpi|mvapich|hpcx")
    list(APPEND loaded_mpi "${module}")
  endif()
endforeach()
set(HETSEQ_MODULES "${loaded_mpi}" CACHE STRING "Modules that hetseq's own loads first (by default the MPI's, as loaded when configuring)")

set(hetseq_mpi_bindir "")
if(NOT HETSEQ_MODULES AND MPIEXEC_EXECUTABLE)
  get_filename_component(folder "${MPIEXEC_EXECUTABLE}" DIRECTORY)
  if(NOT folder MATCHES "^(/usr)?(/local)?/bin$")
    set(hetseq_mpi_bindir "${folder}")
  endif()
endif()

# Environment Modules before 5.1 have no depends-on; prereq asks the user to load them.
set(tcl_requires "")
set(lua_requires "")
foreach(module IN LISTS HETSEQ_MODULES)
  string(APPEND tcl_requires "if { [llength [info commands depends-on]] } { depends-on ${module} } else { prereq ${module} }\n")
  string(APPEND lua_requires "depends_on(\"${module}\")\n")
endforeach()
set(tcl_mpi_path "")
set(lua_mpi_path "")
if(hetseq_mpi_bindir)
  set(tcl_mpi_path "prepend-path PATH \"${hetseq_mpi_bindir}\"\n")
  set(lua_mpi_path "prepend_path(\"PATH\", \"${hetseq_mpi_bindir}\")\n")
endif()
