# cmake --install: a prefix that can be moved.
include_guard(GLOBAL)
include(GNUInstallDirs)
