# Run at every build: writes OUTPUT from INPUT, only where the git revision of SOURCE_DIR has changed.
execute_process(COMMAND git describe --tags --always --dirty
  WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision unknown)
endif()
configure_file("${INPUT}" "${OUTPUT}" @ONLY)
