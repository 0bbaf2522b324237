# One image for every service: `muster supervisor`, `muster worker`, `muster coordinator`, `muster provision`.

FROM ghcr.io/astral-sh/uv:0.13 AS uv

FROM python:3.13-slim AS build
COPY --from=uv /uv /usr/local/bin/uv
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PROJECT_ENVIRONMENT=/opt/venv \
    UV_PYTHON=/usr/local/bin/python3 \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /src

# The dependencies first: this layer is built again only when the lock file changes.
# --no-dev also leaves out the extras for development: nats-server and gRPC (37 MB).
# --frozen, because the packages whose metadata --locked would compare are not copied yet; the next sync compares them.
COPY pyproject.toml uv.lock ./
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --frozen --no-dev --no-install-workspace

COPY libs libs
COPY services services
COPY cli cli
COPY examples examples
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --locked --no-dev --no-editable

FROM python:3.13-slim
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster" \
      org.opencontainers.image.description="Supervisor, workers and coordinator for teams of LLM agents on NATS JetStream" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/opt/venv/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MUSTER_TEAM_FILE=/app/examples/cloud/team.yaml
COPY --from=build /opt/venv /opt/venv
COPY examples /app/examples
WORKDIR /app
# A number, so that Kubernetes can see that it is not root. Nothing is written outside /tmp.
USER 10001:10001
EXPOSE 8080 8081
# Exec form: our process is PID 1 and gets SIGTERM itself.
ENTRYPOINT ["muster"]
CMD ["--help"]
