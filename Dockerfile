# An image of Turnpike from the archive of the package, which `npm pack` makes in a checkout and `npm pack turnpike`
# elsewhere:
#
#   npm pack && docker build --tag turnpike .
#
# docs/operating.md says how to run it.

# The first needs a shell and npm: the SQLite binding is prebuilt in its package. The second needs nothing but Node.
ARG BUILD_BASE=node:24-bookworm-slim
ARG BASE=node:24-bookworm-slim

FROM ${BUILD_BASE} AS build
WORKDIR /opt/turnpike
# For a ledger in PostgreSQL; empty without one.
ARG PACKAGES=pg@8
COPY turnpike-*.tgz ./
RUN npm install --omit=dev --no-audit --no-fund ./turnpike-*.tgz ${PACKAGES} \
  && cd node_modules/better-sqlite3 \
  && mv prebuilds/linux-$(node -p process.arch).node . \
  && rm -rf prebuilds/* deps src \
  && mv linux-*.node prebuilds \
  && mkdir /state

FROM ${BASE}
ARG VERSION=unknown
LABEL org.opencontainers.image.title="Turnpike" \
  org.opencontainers.image.description="An orchestrator that lets untrusted LLM agents act, and proves what they did" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}"
COPY --from=build /opt/turnpike/node_modules /opt/turnpike/node_modules
# A new volume gets the owner of this empty folder.
COPY --from=build --chown=65532:65532 /state /var/lib/turnpike
ENV NODE_ENV=production \
  HOME=/var/lib/turnpike \
  TURNPIKE_SERVE_HOST=0.0.0.0 \
  TURNPIKE_SERVE_ADMIN=127.0.0.1:9090 \
  TURNPIKE_SERVE_STORED_TOKENS=true \
  TURNPIKE_WALL=required
USER 65532:65532
WORKDIR /var/lib/turnpike
VOLUME /var/lib/turnpike
EXPOSE 7391
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9090/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/opt/turnpike/node_modules/turnpike/dist/src/interfaces/cli/main.js"]
CMD ["serve"]
