# syntax=docker/dockerfile:1
# Two images from one wheel:
#   docker build --target operator -t balanced-source/operator:0.2.0 .
#   docker build --target spark --build-arg SPARK_VERSION=4.2.0 -t balanced-source/spark:4.2.0 .
# Everything that pip installs is pinned by hash in .ci/locks. To pin the base image too, give it by digest:
#   --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:…
# Behind a registry of your own, or a proxy with its own certificates, hand pip its settings as secrets:
#   --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt      (pip.conf: cert = /run/secrets/ca.crt)
#   (cargo: --secret id=cargo,src=config.toml)
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG RUST_IMAGE=rust:1.95-slim-bookworm
ARG NATIVE=with

# --- tools, then the wheel; later stages take the code by the wheel, last, so that dependencies stay cached
FROM ${PYTHON_IMAGE} AS tools
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY .ci/locks/build.txt .ci/locks/
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/secrets/ca.crt \
    python3 -m venv /opt/build && /opt/build/bin/pip install --quiet --require-hashes -r .ci/locks/build.txt

FROM tools AS wheel
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
COPY spark_app/src spark_app/src
RUN /opt/build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels .

# --- the native reader, compiled in a stage of its own; `NATIVE=without` leaves it out, and the Python reader serves ----
FROM ${RUST_IMAGE} AS native-with
# hadolint ignore=DL3008
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends cmake g++ make perl python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY .ci/locks/native.txt .ci/locks/
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/secrets/ca.crt \
    python3 -m venv /opt/maturin && /opt/maturin/bin/pip install --quiet --require-hashes -r .ci/locks/native.txt
COPY spark_app/native spark_app/native
RUN --mount=type=secret,id=cargo,target=/usr/local/cargo/config.toml \
    --mount=type=secret,id=ca,target=/run/secrets/ca.crt \
    /opt/maturin/bin/maturin build --quiet --release --manifest-path spark_app/native/Cargo.toml --out /wheels

FROM ${PYTHON_IMAGE} AS native-without
RUN mkdir /wheels

# hadolint ignore=DL3006
FROM native-${NATIVE} AS native

# --- the operator -----------------------------------------------------------------------------------------------------
FROM tools AS operator-build
COPY .ci/locks/operator.txt .ci/locks/
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/secrets/ca.crt \
    python3 -m venv --without-pip /opt/venv \
    && /opt/build/bin/pip --python /opt/venv/bin/python install --quiet --require-hashes --only-binary :all: \
         -r .ci/locks/operator.txt
COPY --from=wheel /wheels /wheels
RUN /opt/build/bin/pip --python /opt/venv/bin/python install --quiet --no-deps --no-index /wheels/*.whl

FROM ${PYTHON_IMAGE} AS operator
LABEL org.opencontainers.image.title="Balanced Source operator" org.opencontainers.image.licenses="Apache-2.0"
RUN echo "operator:x:65532:65532::/nonexistent:/usr/sbin/nologin" >> /etc/passwd \
    && echo "operator:x:65532:" >> /etc/group
COPY --from=operator-build /opt/venv /opt/venv
# the root file system may be read-only
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /tmp
EXPOSE 8080 8081
ENTRYPOINT ["balanced-source"]
CMD ["operator"]

# --- Spark: driver and executors --------------------------------------------------------------------------------------
FROM tools AS spark-build
ARG SPARK_VERSION=4.2.0
COPY .ci/locks/spark42.txt .ci/locks/spark43.txt .ci/locks/
# PySpark comes as source that needs no compiler; its folder is a whole Spark and belongs to /opt/spark
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/secrets/ca.crt \
    minor="${SPARK_VERSION%.*}" && lock=".ci/locks/spark${minor%.*}${minor#*.}.txt" \
    && grep -q "^pyspark==${SPARK_VERSION} " "$lock" \
    && sed -n '/^pyspark==/,/[^\\]$/p' "$lock" > /tmp/pyspark.txt \
    && sed '/^pyspark==/,/[^\\]$/d' "$lock" > /tmp/others.txt \
    && python3 -m venv --without-pip /opt/venv \
    && /opt/build/bin/pip wheel --quiet --no-deps --no-build-isolation --require-hashes --wheel-dir /spark-wheels \
         -r /tmp/pyspark.txt \
    && /opt/build/bin/pip --python /opt/venv/bin/python install --quiet --require-hashes --only-binary :all: \
         -r /tmp/others.txt \
    && /opt/build/bin/pip --python /opt/venv/bin/python install --quiet --no-deps --no-index /spark-wheels/*.whl \
    && packages="$(/opt/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && mv "$packages/pyspark" /opt/spark && ln -s /opt/spark "$packages/pyspark" && mkdir -p /opt/spark/conf
COPY --from=native /wheels /wheels
COPY --from=wheel /wheels /wheels
RUN /opt/build/bin/pip --python /opt/venv/bin/python install --quiet --no-deps --no-index /wheels/*.whl \
    && /opt/venv/bin/python -m balanced_source_spark.precompile

FROM ${PYTHON_IMAGE} AS spark
LABEL org.opencontainers.image.title="Balanced Source on Spark" org.opencontainers.image.licenses="Apache-2.0"
# man1: the Java package wants to put a link there. procps: Spark's scripts call ps.
# hadolint ignore=DL3008
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && ln -s "$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")" /opt/java \
    && echo "spark:x:185:0:Spark:/opt/spark:/bin/bash" >> /etc/passwd
COPY --from=spark-build /opt/spark /opt/spark
COPY --from=spark-build /opt/venv /opt/venv
COPY --chmod=755 spark_app/image/entrypoint.sh /opt/entrypoint.sh
COPY spark_app/image/app.py /opt/balanced-source/app.py
ENV SPARK_HOME=/opt/spark JAVA_HOME=/opt/java PATH=/opt/venv/bin:/opt/spark/bin:/usr/local/bin:/usr/bin:/bin \
    PYSPARK_PYTHON=/opt/venv/bin/python PYSPARK_DRIVER_PYTHON=/opt/venv/bin/python PYTHONDONTWRITEBYTECODE=1
USER 185
WORKDIR /tmp
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/entrypoint.sh"]
