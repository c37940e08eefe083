# SPDX-License-Identifier: Apache-2.0
# Everything comes from Debian 12 packages: no downloads at configure time.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9.1 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
# Reads protobuf's wire format; headers only.
find_path(PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
add_library(protozero INTERFACE)
target_include_directories(protozero SYSTEM INTERFACE "${PROTOZERO_INCLUDE}")
target_compile_definitions(protozero INTERFACE PROTOZERO_USE_VIEW=std::string_view)
# Parses flags; headers only. Its regular expressions survive no long value and no line break.
find_path(CXXOPTS_INCLUDE cxxopts.hpp REQUIRED)
add_library(cxxopts INTERFACE)
target_include_directories(cxxopts SYSTEM INTERFACE "${CXXOPTS_INCLUDE}")
target_compile_definitions(cxxopts INTERFACE CXXOPTS_NO_REGEX)
# Linked in: a shared library costs more memory than the part of it that is used.
find_path(YAML_CPP_INCLUDE yaml-cpp/yaml.h REQUIRED)
find_library(YAML_CPP_LIBRARY NAMES libyaml-cpp.a yaml-cpp REQUIRED)
add_library(yaml_cpp INTERFACE)
target_include_directories(yaml_cpp SYSTEM INTERFACE "${YAML_CPP_INCLUDE}")
target_link_libraries(yaml_cpp INTERFACE "${YAML_CPP_LIBRARY}")
# pkg-config, because its -D flags change the layout of cpp-httplib's classes.
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)
