#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What own_kernel.sh starts: the tests on btrfs alone, on the files $ubd5s and $ubd6s, TESTS and CASES as in
# init.sh. Its mounts are seen by nobody else.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
# shellcheck source=test/quota/run_tests.sh
. "${0%/*}/run_tests.sh"

end() {
  echo "quota: $*"
  exit
}
# Else this were the machine's own.
mount -t tmpfs tmpfs /mnt || end "/mnt cannot be covered"
# shellcheck disable=SC2154
on_btrfs "$ubd5s" "$ubd6s"
run_tests
end "all passed"
