#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serviceaccount-kubeconfig.sh NAMESPACE NAME OUT
#
# Write a self-contained kubeconfig to OUT whose user is an existing ServiceAccount, by a bound
# token of 24 hours. It can do what RBAC grants that ServiceAccount and nothing more. The cluster is
# the one of $LPP_E2E_KUBECONFIG, by default the cluster of up.sh.
# Exit: 0, 1 no such cluster or ServiceAccount, 2 usage.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

if [ $# != 3 ]; then say "usage: serviceaccount-kubeconfig.sh NAMESPACE NAME OUT"; exit 2; fi
umask 077
namespace=$1 name=$2 out=$3
ADMIN_KUBECONFIG=${LPP_E2E_KUBECONFIG:-$ADMIN_KUBECONFIG}
[ -r "$ADMIN_KUBECONFIG" ] || die "$ADMIN_KUBECONFIG cannot be read; is the cluster up?"

token=$(kctl create token "$name" --namespace "$namespace" --duration 24h) ||
  die "no token for ServiceAccount $namespace/$name"
# The token goes through a file descriptor: command lines can be read by everybody.
kctl config view --minify --flatten --raw -o json |
  jq --arg namespace "$namespace" --arg user "$name" --rawfile token <(printf %s "$token") '{
    apiVersion: "v1", kind: "Config", "current-context": "e2e",
    clusters: [{name: "e2e", cluster: .clusters[0].cluster}],
    users: [{name: $user, user: {token: $token}}],
    contexts: [{name: "e2e", context: {cluster: "e2e", user: $user, namespace: $namespace}}]
  }' >"$out.new" || die "no kubeconfig could be made from $ADMIN_KUBECONFIG"
mv -f "$out.new" "$out"
