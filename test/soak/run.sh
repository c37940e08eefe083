#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [lpp-soak arguments...]: the daemon under churn for SOAK_SECONDS (1800); fails unless its
# memory, descriptors and threads stay level in the second half. LPP_BUILD_DIR: build/dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${LPP_BUILD_DIR:-build/dev}
exec "$build/test/soak/lpp-soak" --daemon "$build/src/local-path-provisioner" \
  --seconds "${SOAK_SECONDS:-1800}" "$@"
