# SPDX-License-Identifier: Apache-2.0
# INTERFACE targets that carry every flag; all our targets link them.
add_library(lpp_warnings INTERFACE)
target_compile_options(
  lpp_warnings
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            $<$<CXX_COMPILER_ID:GNU>:-Wsuggest-override;-Wduplicated-cond;-Wlogical-op>
            $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety;-Wreserved-identifier>
            $<$<BOOL:${LPP_WARNINGS_AS_ERRORS}>:-Werror>)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Meant for headers; a source file that is compiled with others looks like one.
  target_compile_options(lpp_warnings INTERFACE -Wno-subobject-linkage)
endif()

add_library(lpp_sanitizers INTERFACE)
if(LPP_SANITIZE)
  target_compile_options(lpp_sanitizers INTERFACE -fsanitize=${LPP_SANITIZE}
                                                  -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(lpp_sanitizers INTERFACE -fsanitize=${LPP_SANITIZE})
endif()
if(LPP_SANITIZE MATCHES "undefined")
  # What these find ends in a bad access, which the address sanitizer reports; they are half of the
  # time to compile.
  target_compile_options(lpp_sanitizers INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
endif()
if(LPP_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The standard library's atomic_thread_fence is not understood by the thread sanitizer; gcc warns.
  target_compile_options(lpp_sanitizers INTERFACE -Wno-tsan)
endif()

add_library(lpp_options INTERFACE)
# The first element of an empty vector and the like: a message and the end, in all that is tested.
target_compile_definitions(lpp_options INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
target_link_libraries(lpp_options INTERFACE lpp_warnings lpp_sanitizers)
target_include_directories(lpp_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
