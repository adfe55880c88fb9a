#!/usr/bin/env bash
# usage: tests/build/modules_test.sh BUILD_DIR
# The installed modulefiles with the real Environment Modules and Lmod, whichever are here: load, unload, conflict, a
# moved prefix, a copied modulefile, the MPI's module, and a prefix without hetseq.
# Each is looked for by the variable that its own set-up exports (MODULES_CMD, LMOD_CMD), then where Debian has it.
set -euo pipefail
build=$(realpath "${1:?usage: modules_test.sh BUILD_DIR}")
fail() { cat "$work/messages"; echo "FAILED with $tool: $*"; exit 1; }
work=$(mktemp -d -p "$build")
trap 'rm -rf "$work"' EXIT
tool=cmake
touch "$work/messages"

# module_command TOOL: its program, nothing where it is absent.
module_command() {
  local -A places=(
    [environment-modules]="${MODULES_CMD-} $(echo /usr/lib/*/modulecmd.tcl) /usr/share/Modules/libexec/modulecmd.tcl"
    [lmod]="${LMOD_CMD-} /usr/share/lmod/lmod/libexec/lmod")
  local place
  for place in ${places[$1]}; do
    [[ ! -x $place ]] || { echo "$place"; return; }
  done
}

# module WORD...: as the shell function of that name; what it prints is in messages, and its success in its own.
module() {
  local script
  script=$("$program" bash "$@" 2>"$work/messages") || return
  eval "$script"
}

# In a subshell: a shell that has loaded nothing.
fresh_shell() {
  unset "${!LOADEDMODULES@}" "${!_LMFILES_@}" "${!_ModuleTable@}" "${!__MODULES@}" "${!__LMOD@}" "${!OMPI_MCA_oob@}" \
    MANPATH XDG_DATA_DIRS HETSEQ_INPUTS PYTHONPATH
  export MODULEPATH=$1 PATH=/usr/local/bin:/usr/bin:/bin
}
expect() { [[ $2 == "$3" ]] || fail "$1 is '$2', not '$3'"; }

loads_and_unloads() (
  local prefix=$1
  fresh_shell "$2"
  module load hetseq || fail 'load'
  expect 'the program' "$(type -P hetseq)" "$prefix/bin/hetseq"
  hetseq --version | grep -q '^hetseq ' || fail 'hetseq --version'
  [[ -f $HETSEQ_INPUTS/mnist.cfg ]] || fail "no inputs in $HETSEQ_INPUTS"
  expect 'the manual' "$(man -w hetseq 2>/dev/null || echo "$prefix/share/man/man1/hetseq.1")" "$prefix/share/man/man1/hetseq.1"
  [[ $MANPATH == "$prefix/share/man:"* ]] || fail "MANPATH '$MANPATH' ends the system's own"
  expect XDG_DATA_DIRS "$XDG_DATA_DIRS" "$prefix/share:/usr/local/share:/usr/share"
  expect 'the keep-alive time' "$OMPI_MCA_oob_tcp_keepalive_time" 5
  expect PYTHONPATH "$PYTHONPATH" "$prefix/lib/hetseq/python"
  expect 'what it adds to Python' "$(ls "$PYTHONPATH")" hetseq

  module unload hetseq || fail 'unload'
  expect PATH "$PATH" /usr/local/bin:/usr/bin:/bin
  expect 'what is left' "${HETSEQ_INPUTS-}${OMPI_MCA_oob_tcp_keepalive_time-}${MANPATH-}${PYTHONPATH-}" ''
  expect XDG_DATA_DIRS "$XDG_DATA_DIRS" /usr/local/share:/usr/share
)

keeps_what_the_user_set() (
  fresh_shell "$2"
  export MANPATH=/my/man XDG_DATA_DIRS=/my/share OMPI_MCA_oob_tcp_keepalive_time=60
  module load hetseq || fail 'load'
  expect 'the keep-alive time' "$OMPI_MCA_oob_tcp_keepalive_time" 60
  module unload hetseq || fail 'unload'
  expect 'the keep-alive time' "$OMPI_MCA_oob_tcp_keepalive_time" 60
  expect MANPATH "${MANPATH%%:*}" /my/man
  expect XDG_DATA_DIRS "$XDG_DATA_DIRS" /my/share
)

# Environment Modules refuse a second version, Lmod changes to it: never two.
has_one_version_at_a_time() (
  fresh_shell "$2"
  module load "hetseq/$version" || fail 'load'
  if module load hetseq/99; then
    expect 'what is loaded' "$LOADEDMODULES" hetseq/99
  else
    grep -qi conflict "$work/messages" || fail 'the second version is refused for another reason'
    expect 'what is loaded' "$LOADEDMODULES" "hetseq/$version"
  fi
  expect 'their number in PATH' "$(tr : '\n' <<<"$PATH" | grep -c "^$1/bin$")" 1
)

says_what_it_is() (
  fresh_shell "$2"
  module whatis hetseq || fail 'whatis'
  [[ $("$program" bash whatis hetseq 2>&1) == *'Version: '"$version"* ]] || fail 'whatis does not say the version'
  [[ $("$program" bash help hetseq 2>&1) == *"mpirun -np 4 hetseq train \$HETSEQ_INPUTS/mnist.cfg"* ]] ||
    fail 'help does not show a command'
)

brings_its_mpi() (
  fresh_shell "$2"
  module load hetseq || fail 'load'
  expect 'what the MPI module sets' "${SITE_MPI-}" here
  module unload hetseq || fail 'unload'
  expect 'what the MPI module sets' "${SITE_MPI-}" ''
)

# No module brought the MPI: its mpirun's folder comes along, behind hetseq's.
finds_its_mpirun() (
  fresh_shell "$2"
  module load hetseq || fail 'load'
  expect PATH "$PATH" "$1/bin:/opt/mpi/bin:/usr/local/bin:/usr/bin:/bin"
)

refuses_an_empty_prefix() (
  fresh_shell "$2"
  module load hetseq || true  # Lmod calls a Tcl file's break no failure
  grep -q 'no hetseq in' "$work/messages" || fail 'no word of the empty prefix'
  expect PATH "$PATH" /usr/local/bin:/usr/bin:/bin
  expect 'what is loaded' "${LOADEDMODULES-}" ''
)

# fill_in FOLDER PREFIX LOADED_MODULES: modulefiles as cmake --install makes them where these modules were loaded and
# mpirun is in /opt.
fill_in() {
  cat >"$work/fill_in.cmake" <<EOF
set(CMAKE_INSTALL_PREFIX $2)
set(CMAKE_MODULE_PATH $PWD/cmake)
set(MPIEXEC_EXECUTABLE /opt/mpi/bin/mpirun)
include(HetseqModules)
set(version $version)
set(bindir bin)
set(datadir share)
set(mandir share/man)
set(python_dir lib/hetseq/python)
set(libtorch_version 2.11.0)
set(to_prefix ../../..)
configure_file($PWD/modules/hetseq.tcl.in $1/hetseq/$version @ONLY)
configure_file($PWD/modules/hetseq.lua.in $1/hetseq/$version.lua @ONLY)
EOF
  LOADEDMODULES=$3 cmake -P "$work/fill_in.cmake"
}

check_all() {
  local kind=$1 prefix=$work/prefix  # tcl or lua: which modulefile the tool reads
  only() { [[ $kind == lua ]] || find "$work/$1" -name '*.lua' -delete; }
  rm -rf "$prefix" "$work"/{moved,copied,site,empty}
  cp -al "$work/installed" "$prefix"  # links, since LibTorch is large
  sed -i "s|$work/installed|$prefix|" "$prefix"/share/modulefiles/hetseq/*
  mkdir -p "$work/copied/hetseq" "$work/site/mpi"
  cp "$prefix"/share/modulefiles/hetseq/* "$work/copied/hetseq/"
  only prefix; only copied
  loads_and_unloads "$prefix" "$prefix/share/modulefiles"
  loads_and_unloads "$prefix" "$work/copied"
  keeps_what_the_user_set "$prefix" "$work/copied"
  says_what_it_is "$prefix" "$work/copied"
  for file in "$work/copied/hetseq/$version"*; do cp "$file" "${file/$version/99}"; done
  has_one_version_at_a_time "$prefix" "$work/copied"

  printf '#%%Module1.0\nsetenv SITE_MPI here\n' >"$work/site/mpi/openmpi-4.1"
  fill_in "$work/site" "$prefix" gcc/12:mpi/openmpi-4.1
  only site
  grep -q 'mpi/openmpi-4.1' "$work/site/hetseq/$version" || fail 'the MPI module is not named'
  brings_its_mpi "$prefix" "$work/site"
  fill_in "$work/site" "$prefix" gcc/12
  only site
  finds_its_mpirun "$prefix" "$work/site"

  mv "$prefix" "$work/moved"
  loads_and_unloads "$work/moved" "$work/moved/share/modulefiles"
  mkdir -p "$work/empty/share/modulefiles"
  mv "$work/moved/share/modulefiles/hetseq" "$work/empty/share/modulefiles/"
  refuses_an_empty_prefix "$work/empty" "$work/empty/share/modulefiles"
}

cmake --install "$build" --prefix "$work/installed" >"$work/messages" || fail install
version=$("$work/installed/bin/hetseq" --version | cut -d' ' -f2)
checked='' absent=''
for tool in environment-modules lmod; do
  program=$(module_command $tool)
  if [[ -z $program ]]; then
    absent+=" $tool"
    continue
  fi
  check_all tcl
  checked+=", $tool reads the Tcl file"
  if [[ $tool == lmod ]]; then
    check_all lua
    checked+=", $tool reads the Lua file"
  fi
done
[[ -n $checked ]] || { echo 'SKIPPED: neither Environment Modules nor Lmod is here'; exit 77; }
echo "${checked#, }${absent:+; absent:$absent}"
