# Run after hetseq was linked, with PROGRAM and FOLDER: the man page and the completions, which the program makes from
# its own tables. Where it cannot run (built for another machine), they are left out.
set(ENV{ASAN_OPTIONS} detect_leaks=0)  # LibTorch's own
file(MAKE_DIRECTORY "${FOLDER}")
foreach(document IN ITEMS "man:hetseq.1" "bash:hetseq.bash" "zsh:_hetseq" "fish:hetseq.fish")
  string(REGEX MATCH "^([a-z]+):(.*)$" matched ${document})
  set(file "${FOLDER}/${CMAKE_MATCH_2}")
  execute_process(COMMAND "${PROGRAM}" document ${CMAKE_MATCH_1}
    OUTPUT_FILE "${file}" ERROR_VARIABLE error RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    file(REMOVE "${file}")
    message(WARNING "${PROGRAM} does not run here (${code} ${error}): ${CMAKE_MATCH_2} will not be installed")
  endif()
endforeach()
