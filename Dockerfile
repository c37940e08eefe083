# SPDX-License-Identifier: Apache-2.0
# The image holds the program, the shared libraries it needs, an SBOM and nothing else: no shell, no
# package manager. `make image` builds it with docker or buildah.
ARG BASE=debian:12-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends bash make
WORKDIR /src
COPY scripts/install-deps.sh scripts/
RUN scripts/install-deps.sh build
COPY . .
ARG VERSION=unknown
ARG SOURCE_DATE_EPOCH=0
RUN make build && \
    scripts/collect-runtime.sh build/release/src/local-path-provisioner /rootfs && \
    mkdir -p /rootfs/usr/share/sbom && \
    scripts/sbom.sh build/release/src/local-path-provisioner "$VERSION" \
      >/rootfs/usr/share/sbom/local-path-provisioner.spdx.json && \
    find /rootfs -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="local-path-provisioner" \
      org.opencontainers.image.description="Kubernetes volumes from directories on the nodes' own disks" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /rootfs/ /
ENV PATH=/usr/bin
USER 65532:65532
ENTRYPOINT ["local-path-provisioner"]
CMD ["start"]
