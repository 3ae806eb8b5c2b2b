"""Values that turn on everything that can be on together."""

from typing import Any

EVERYTHING: dict[str, Any] = {
    "commonLabels": {"team": "data"},
    "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": [{"name": "registry"}]},
    "watchNamespaces": ["jobs", "more-jobs"],
    "replicas": 2,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    "logging": {"debug": True},
    "sparkConf": {"spark.ui.enabled": "false"},
    "settings": {"resyncSeconds": 10, "saveIntervalSeconds": 1.5, "maxRestarts": 2},
    "metrics": {
        "service": {"enabled": True},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "drivers": {"podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Streaming"}},
    },
    "page": {"enabled": True, "service": {"enabled": True}, "tokenSecret": {"name": "page"}},
    "serviceAccount": {"annotations": {"example.org/role": "reader"}},
    "spark": {
        "jobNamespaces": ["jobs"],
        "serviceAccount": {"annotations": {"a": "b"}},
        "executorConfigMaps": True,
    },
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
        }
    ],
    "priorityClassName": "system-cluster-critical",
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {}}],
        "pageFrom": [{"podSelector": {}}],
        "extraEgress": [{"to": []}],
    },
}
