# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by run.sh and demo.sh: the user-mode Linux kernel.

# run_kernel WORK MEMORY INIT ARGUMENT...    Its files are in the directory WORK. What it and its programs
# say comes out; its exit status says nothing. kernel_name: by which it can be found among the processes.
run_kernel() {
  local work=$1 memory=$2 init=$3 registers=$1/uml_registers.so
  shift 3
  # Without it this kernel does not start on a processor with AMX.
  c++ -std=c++20 -O2 -shared -fPIC -o "$registers" "$kernel_dir/uml_registers.cpp" || {
    echo 'uml_registers.cpp does not compile'
    return 1
  }
  TMPDIR=$work timeout -k 5 "${LIMIT:-1700}" env LD_PRELOAD="$registers" linux.uml mem="$memory" \
    umid="${kernel_name:-lpp-$$}" uml_dir="$work/" root=/dev/root rootfstype=hostfs rootflags=/ ro init="$init" \
    con=null con0=null,fd:1 ssl=null quiet "$@" </dev/null 2>&1 || true
}
kernel_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
