#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sbom.sh PROGRAM VERSION: the software that is in the program and beside it in its image, as SPDX 2.3
# JSON on standard output: the program, the packages of its shared libraries, and those whose headers
# are compiled into it. Debian only. SOURCE_DATE_EPOCH is its date, so that it can be made again.
set -euo pipefail

if [ $# != 2 ] || [ ! -x "$1" ]; then
  echo 'usage: sbom.sh PROGRAM VERSION' >&2
  exit 2
fi
program=$1
version=$2
compiled_in=(nlohmann-json3-dev libspdlog-dev libfmt-dev libcpp-httplib-dev libprotozero-dev
  libyaml-cpp-dev)

# The package of each library; the package database may know it by either side of /lib -> /usr/lib.
linked=$(ldd "$program" | grep -oE '(/[^ ]+) \(0x' | cut -d ' ' -f 1 | while read -r library; do
  dpkg-query -S "$library" "/usr$library" 2>/dev/null | cut -d : -f 1 | head -n 1 || true
done | sort -u)

hash=$(sha256sum "$program" | cut -d ' ' -f 1)
date=$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)
name=local-path-provisioner
cat <<JSON
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "$name-$version",
  "documentNamespace": "https://spdx.org/spdxdocs/$name-$version-$hash",
  "creationInfo": {"created": "$date", "creators": ["Tool: scripts/sbom.sh"]},
  "documentDescribes": ["SPDXRef-program"],
  "packages": [
    {"SPDXID": "SPDXRef-program", "name": "$name", "versionInfo": "$version",
     "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
     "checksums": [{"algorithm": "SHA256", "checksumValue": "$hash"}]}
JSON
relations=()
package() { # NAME RELATION
  local version architecture source
  version=$(dpkg-query -W -f '${Version}' "$1")
  architecture=$(dpkg-query -W -f '${Architecture}' "$1")
  source=$(dpkg-query -W -f '${source:Package}' "$1")
  printf '    ,{"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s",\n' "${1//+/-}" "$1" "$version"
  printf '     "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": false,\n'
  printf '     "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",\n'
  printf '       "referenceLocator": "pkg:deb/debian/%s@%s?arch=%s&upstream=%s"}]}\n' \
    "${1//+/%2B}" "${version//+/%2B}" "$architecture" "${source//+/%2B}"
  relations+=("{\"spdxElementId\": \"SPDXRef-program\", \"relationshipType\": \"$2\", \"relatedSpdxElement\": \"SPDXRef-${1//+/-}\"}")
}
for one in $linked; do package "$one" DYNAMIC_LINK; done
for one in "${compiled_in[@]}"; do
  if dpkg-query -W "$one" >/dev/null 2>&1; then package "$one" STATIC_LINK; fi
done
printf '  ],\n  "relationships": [\n    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-program"}'
printf ',\n    %s' "${relations[@]}"
printf '\n  ]\n}\n'
