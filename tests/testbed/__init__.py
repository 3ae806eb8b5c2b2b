"""The testbed: real Kubernetes, Kafka and Spark parts on a bare machine, without containers.

Everything is built or fetched once from the language registries into a cache that is keyed by
content (`testbed.cache`), and runs as ordinary processes on the loopback interface:

* `testbed.control_plane`: etcd, kube-apiserver, kube-controller-manager;
* `testbed.kafka`: KRaft clusters;
* `testbed.spark_operator`: Kubeflow's controller with the real `spark-submit`;
* `testbed.process_node`: a node that runs every container as a local process;
* `testbed.cluster`: all of it together behind one interface.

Run `python -m testbed --help` for the command line.
"""
