# The image holds the daemon, the shared libraries it needs and nothing else: no shell, no package
# manager. `make image` builds it with docker or buildah.
ARG BASE=debian:12-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends bash make
WORKDIR /src
COPY scripts/install-deps.sh scripts/
RUN scripts/install-deps.sh build
COPY . .
RUN make build && scripts/collect-runtime.sh build/release/src/local-path-provisioner /rootfs

FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="local-path-provisioner" \
      org.opencontainers.image.description="Kubernetes volumes from directories on the nodes' own disks" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /rootfs/ /
ENV PATH=/usr/bin
USER 65532:65532
ENTRYPOINT ["local-path-provisioner"]
CMD ["start"]
