# SPDX-License-Identifier: Apache-2.0
# Compiles snippets.cpp as it stands, which must work, and with each WRONG, which must not.
# cmake -DCOMPILER=c++ -DSOURCE=repository -P run.cmake
set(file ${SOURCE}/tests/nocompile/snippets.cpp)
function(compile wrong result errors)
  execute_process(
    COMMAND ${COMPILER} -std=c++20 -fsyntax-only -DWRONG=${wrong} -I${SOURCE}/src -I${SOURCE}/include ${file}
    RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE text)
  set(${result} ${code} PARENT_SCOPE)
  set(${errors} "${text}" PARENT_SCOPE)
endfunction()

compile(0 code errors)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "what is right does not compile:\n${errors}")
endif()
file(STRINGS ${file} lines REGEX "WRONG == [0-9]+")
set(count 0)
foreach(line ${lines})
  math(EXPR count "${count} + 1")
  string(REGEX MATCH "[0-9]+" wrong "${line}")
  if(NOT wrong EQUAL count)
    message(FATAL_ERROR "snippets are numbered 1, 2, ...: found ${wrong} at place ${count}")
  endif()
  compile(${wrong} code errors)
  # The mistake itself must be what stops it, not something before it.
  if(code EQUAL 0)
    message(SEND_ERROR "snippet ${wrong} compiles")
  elseif(NOT errors MATCHES "snippets.cpp:[0-9]+:[0-9]+: error:")
    message(SEND_ERROR "snippet ${wrong} fails elsewhere:\n${errors}")
  endif()
endforeach()
if(count LESS 19)
  message(FATAL_ERROR "only ${count} snippets were found")
endif()
