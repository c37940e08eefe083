# SPDX-License-Identifier: Apache-2.0
# The cluster as a library, and its programs.
add_library(lpp_devcluster STATIC cluster.cpp)
target_link_libraries(lpp_devcluster PUBLIC lpp_devcluster_node lpp_devcluster_controllers)

add_executable(lpp-devcluster main.cpp)
target_link_libraries(lpp-devcluster PRIVATE lpp_devcluster)

add_executable(lpp-demo demo_main.cpp demo.cpp agents_demo.cpp quota_demo.cpp)
target_link_libraries(lpp-demo PRIVATE lpp_devcluster lpp_test_harness)
