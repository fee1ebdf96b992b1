# The image of the operator and its CLI, for every platform that the two bases exist for.
#   docker build -t lockedcron:dev .
#   docker buildx build --platform linux/amd64,linux/arm64 ...
# Behind a mirror of npm: --secret id=npmrc,src=$HOME/.npmrc. Without a network at all: make image (CONTRIBUTING.md).

# Bases by name and version, and by content where a digest is given: --build-arg RUNTIME_DIGEST=sha256:... A release gives both
# (make release refuses to be made without), and so does make image with those of its stand-ins.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim
ARG NODE_DIGEST=
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12:nonroot
ARG RUNTIME_DIGEST=

# Plain JavaScript comes out of this stage, the same for all platforms: so it runs on the builder's own.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE}${NODE_DIGEST:+@${NODE_DIGEST}} AS bundle
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=secret,id=npmrc,target=/run/npmrc \
    NPM_CONFIG_USERCONFIG=/run/npmrc npm ci --ignore-scripts --loglevel=error
COPY LICENSE NOTICE ./
COPY tools/image tools/image
COPY src src
RUN node tools/image/bundle.ts /app

FROM ${RUNTIME_IMAGE}${RUNTIME_DIGEST:+@${RUNTIME_DIGEST}}
ARG RUNTIME_IMAGE
ARG RUNTIME_DIGEST
ARG VERSION=0.0.0-dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="lockedcron" \
      org.opencontainers.image.description="Kubernetes operator that runs cron Jobs exactly once per tick" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/lockedcron/lockedcron" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}" \
      org.opencontainers.image.base.digest="${RUNTIME_DIGEST}"
# The distroless image has its Node in /nodejs/bin, others elsewhere.
ENV PATH=/nodejs/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    NODE_ENV=production
WORKDIR /app
COPY --from=bundle /app /app
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["node"]
CMD ["/app/dist/main.js"]
