// SPDX-License-Identifier: Apache-2.0
// Package chart holds the tests of deploy/chart, see ../run.sh. They render with Helm's own
// packages, which is what `helm template` does.
package chart
