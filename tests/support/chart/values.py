"""Values that turn on everything that can be on together."""

from typing import Any

SAMPLES: dict[str, Any] = {
    "jobLabel": "app.kubernetes.io/name",
    "podTargetLabels": ["team"],
    "sampleLimit": 10000,
}
"""What a monitor says about samples beside its endpoint."""

EVERYTHING: dict[str, Any] = {
    "commonLabels": {"team": "data"},
    "commonAnnotations": {"example.org/owner": "data"},
    "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": [{"name": "registry"}]},
    "watchNamespaces": ["jobs", "more-jobs"],
    "replicas": 2,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    "logging": {"debug": True},
    "sparkConf": {"spark.ui.enabled": "false"},
    "settings": {"resyncSeconds": 10, "saveIntervalSeconds": 1.5, "maxRestarts": 2},
    "metrics": {
        "service": {"enabled": True, "type": "NodePort", "labels": {"tier": "metrics"}},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, **SAMPLES},
        "drivers": {"podMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Streaming"}},
    },
    "page": {"enabled": True, "service": {"enabled": True}, "tokenSecret": {"name": "page"}},
    "revisionHistoryLimit": 3,
    "serviceAccount": {"labels": {"a": "b"}, "annotations": {"example.org/role": "reader"}},
    "spark": {
        "jobNamespaces": ["jobs"],
        "serviceAccount": {"annotations": {"a": "b"}},
        "executorConfigMaps": True,
    },
    "deploymentAnnotations": {"a": "b"},
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
    "runtimeClassName": "gvisor",
    "hostAliases": [{"ip": "10.0.0.7", "hostnames": ["broker-1.example.org"]}],
    "dnsPolicy": "None",
    "dnsConfig": {"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "1"}]},
    "podDisruptionBudget": {"maxUnavailable": 1},
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
