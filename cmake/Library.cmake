# SPDX-License-Identifier: Apache-2.0
# lpp_library(name DEPS targets...): one static library from all .cpp files of the current folder.
# The link lines are the rule about which folder may use which.
function(lpp_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC lpp_options Threads::Threads ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE lpp_options Threads::Threads ${ARG_DEPS})
  endif()
endfunction()
