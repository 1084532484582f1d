# The Baton sidecar: one Python, one virtual environment, one user without rights, nothing to write.
#
#   docker build -t baton .
#   docker build -t baton --build-arg DIGEST=sha256:… .          # the base, pinned: see docs/kubernetes.md
#   docker buildx build --platform linux/amd64,linux/arm64 …     # everything installed has wheels for both
#
# The base is pinned by its tag and, where the build gives one, its digest; releases give one.
ARG BASE=python:3.11-slim-bookworm
ARG DIGEST=

FROM ${BASE}${DIGEST:+@${DIGEST}} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements.lock requirements-dev.lock ./

# The dependencies change less often than the code, so they come first. Wheels only: no compiler, and
# no code of others runs at build time.
RUN python -m venv --without-pip /opt/baton \
 && python -m pip --python /opt/baton/bin/python install \
      --require-hashes --only-binary=:all: -r requirements.lock

# The build tool is pinned like everything else; it does not get into the image.
RUN awk '/^[^ #]/ { wanted = /^setuptools==/ } wanted' requirements-dev.lock > build.lock \
 && python -m pip install --require-hashes --only-binary=:all: --target /opt/tools -r build.lock

COPY pyproject.toml README.md LICENSE ./
COPY sidecar sidecar
# sidecar/_proto/baton/v1 links to it: one copy of the generated code, see docs/adr/0007-generated-code.md.
COPY clients/python/baton/v1 clients/python/baton/v1
RUN PYTHONPATH=/opt/tools python -m pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /dist . \
 && python -m pip --python /opt/baton/bin/python install --no-deps --no-index /dist/*.whl


FROM ${BASE}${DIGEST:+@${DIGEST}}
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="Baton" \
      org.opencontainers.image.description="A sidecar that elects leaders and runs singletons and schedules once per cluster" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/baton /opt/baton
# Byte code is in the image already, and the root file system may be read-only.
ENV PATH=/opt/baton/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# A number, so that Kubernetes can tell that it is not root.
USER 65532:65532
EXPOSE 9400
# For Docker and Compose; Kubernetes uses the probes of the pod spec instead.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('BATON_HTTP_ADDRESS', ':9400').rpartition(':')[2]), timeout=2); c.request('GET', '/livez'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["baton"]
CMD ["run"]
