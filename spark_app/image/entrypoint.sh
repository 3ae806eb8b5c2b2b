#!/bin/bash
# Entry point of the Spark image. Spark on Kubernetes starts a container with one of two words:
#   driver ARGUMENTS…   a spark-submit in client mode with these arguments
#   executor            an executor that is described by SPARK_… variables
# Anything else is run as it is.
set -euo pipefail

: "${SPARK_HOME:=/opt/spark}"
export SPARK_HOME

# Hadoop's login fails for a user without a name, and a cluster may run the image as any user.
if ! getent passwd "$(id -u)" >/dev/null && [ -w /etc/passwd ]; then
  echo "spark:x:$(id -u):$(id -g):Spark:${HOME:-$SPARK_HOME}:/bin/false" >>/etc/passwd
fi

# Settings first, so that they win over what the jars bring.
class_path() {
  local path="${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*"
  [ -z "${SPARK_EXTRA_CLASSPATH:-}" ] || path+=":$SPARK_EXTRA_CLASSPATH"
  [ -z "${HADOOP_CONF_DIR:-}" ] || path="$HADOOP_CONF_DIR:$path"
  echo "$path:$PWD"
}

# The driver hands JVM options over in variables SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …
java_options() {
  local number=0 name
  while name="SPARK_JAVA_OPT_$number" && [ -n "${!name+set}" ]; do
    printf '%s\0' "${!name}"
    number=$((number + 1))
  done
}

run_driver() {
  exec "$SPARK_HOME/bin/spark-submit" \
    --deploy-mode client \
    --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
    "$@"
}

run_executor() {
  local options=() java=java
  mapfile -d '' -t options < <(java_options)
  [ -z "${JAVA_HOME:-}" ] || java="$JAVA_HOME/bin/java"
  exec "$java" ${options[@]+"${options[@]}"} \
    "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "$(class_path)" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
}

case "${1:-}" in
  driver) shift; run_driver "$@" ;;
  executor) run_executor ;;
  *) exec "$@" ;;
esac
