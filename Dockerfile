# The page, built with Node; then one Python image for the server, the Ray head and Ray workers.

FROM node:20-bookworm-slim AS page
WORKDIR /src/frontend
COPY frontend/package.json frontend/package-lock.json ./
RUN npm ci
COPY frontend ./
RUN npm run build

FROM python:3.11-slim-bookworm
ARG COLOOP_TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
RUN pip install torch==2.13.0 --index-url "$COLOOP_TORCH_INDEX"
WORKDIR /src
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY engine engine
COPY backend backend
COPY presets presets
COPY --from=page /src/backend/coloop_server/_static backend/coloop_server/_static
RUN pip install -c requirements.lock ".[all,postgres]"

RUN useradd --create-home --uid 1000 coloop \
    && mkdir -p /data /runs /work \
    && chown coloop:coloop /data /runs /work
USER 1000:1000
WORKDIR /work
VOLUME ["/data", "/runs"]
EXPOSE 8321
CMD ["coloop", "serve", "--host", "0.0.0.0", "--no-browser", "--data", "/data"]
