{{- define "balanced-source.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "balanced-source.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "balanced-source.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "balanced-source.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "balanced-source.selectorLabels" -}}
app.kubernetes.io/name: {{ include "balanced-source.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* How doctor, report and the runbooks find the operator, whatever nameOverride is. Not a part of any selector here: an upgrade could not change that. */}}
{{- define "balanced-source.component" -}}
balancedsource.io/component: operator
{{- end }}

{{- define "balanced-source.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "balanced-source.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "balanced-source.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "balanced-source.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name must be set if serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "balanced-source.namespaceSelector" -}}
{{- trim (default "" .Values.watchNamespaceSelector) }}
{{- end }}

{{- define "balanced-source.image" -}}
{{- $repository := include "balanced-source.repository" . }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* The repository in the registry of image.registry or global.imageRegistry, which replaces that of the repository. */}}
{{- define "balanced-source.repository" -}}
{{- $registry := coalesce .Values.image.registry (default dict .Values.global).imageRegistry | default "" | trimSuffix "/" }}
{{- $parts := splitList "/" .Values.image.repository }}
{{- $first := first $parts }}
{{- $isQualified := and (gt (len $parts) 1) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) }}
{{- if $registry }}
{{- printf "%s/%s" $registry (ternary (rest $parts | join "/") .Values.image.repository $isQualified) }}
{{- else }}
{{- .Values.image.repository }}
{{- end }}
{{- end }}

{{- define "balanced-source.pullSecrets" -}}
{{- with concat .Values.image.pullSecrets (default list (default dict .Values.global).imagePullSecrets) | uniq }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/*
OpenShift runs pods with ids of their namespace, and its policy restricted-v2 refuses others. Those of values.yaml are left
out there: without them the user is the namespace's, or else the image's, which is 65532, too. Other ids are a choice.
*/}}
{{- define "balanced-source.podSecurityContext" -}}
{{- $context := deepCopy (default dict .Values.podSecurityContext) }}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}
{{- range $field := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- if eq (get $context $field | toString) "65532" }}
{{- $_ := unset $context $field }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{/* Labels of everything and those of one object, which win. A key that stands twice would be invalid YAML. */}}
{{- define "balanced-source.labelsWith" -}}
{{- toYaml (merge (deepCopy .more) (include "balanced-source.labels" .root | fromYaml)) }}
{{- end }}

{{/* Both, of everything and of one object, whose own win. */}}
{{- define "balanced-source.labelsAndAnnotations" -}}
labels:
  {{- include "balanced-source.labelsWith" (dict "root" .root "more" (default dict .labels)) | nindent 2 }}
{{- with merge (deepCopy (default dict .annotations)) (default dict .root.Values.commonAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the spec of a monitor says beside its endpoint; a PodMonitor has no targetLabels. */}}
{{- define "balanced-source.monitorOptions" -}}
{{- range $field := list "jobLabel" "targetLabels" "podTargetLabels" "sampleLimit" }}
{{- with get $ $field }}
{{ $field }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Of the disruption budget, which has either this or maxUnavailable. */}}
{{- define "balanced-source.minAvailable" -}}
{{- $least := .Values.podDisruptionBudget.minAvailable }}
{{- ternary 1 $least (kindIs "invalid" $least) }}
{{- end }}

{{/* Constraints without a selector would count no pods, and do nothing: they get the Deployment's. */}}
{{- define "balanced-source.topologySpread" -}}
{{- $constraints := list }}
{{- $selector := dict "matchLabels" (include "balanced-source.selectorLabels" . | fromYaml) }}
{{- range .Values.topologySpreadConstraints }}
{{- $constraints = append $constraints (ternary . (set (deepCopy .) "labelSelector" $selector) (hasKey . "labelSelector")) }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}

{{/* What the operator does to objects of the namespaces that it serves: exactly these calls, no others. */}}
{{- define "balanced-source.rules" -}}
- apiGroups: [balancedsource.io]
  resources: [balancedsources]
  verbs: [get, list, watch]
- apiGroups: [balancedsource.io]
  resources: [balancedsources/scale]
  verbs: [patch]
- apiGroups: [balancedsource.io]
  resources: [balancedsources/status]
  verbs: [patch]
# needed for owner references that block deletion, where the API server checks them
- apiGroups: [balancedsource.io]
  resources: [balancedsources/finalizers]
  verbs: [update]
# the documents; `patch` is only handed on to drivers: nobody can grant what he does not hold
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, update, patch]
# of Kubeflow's Spark operator and of Apache's: spec.application.provider chooses
- apiGroups: [sparkoperator.k8s.io, spark.apache.org]
  resources: [sparkapplications]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# dry runs that check pod templates; a PodTemplate does nothing even if it exists
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [create]
# by the names in spec.source, which RBAC cannot know
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get]
# a driver's right to its own documents, by server-side apply
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  # get tells whether one of that name belongs to somebody else, watch when one was changed
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* Where the runbooks are: files that a repository shows, pages of the site, or nothing. */}}
{{- define "balanced-source.runbookFolder" -}}
{{- if .Values.metrics.prometheusRule.runbookUrl }}
{{- .Values.metrics.prometheusRule.runbookUrl | trimSuffix "/" }}
{{- else if .Values.documentationUrl }}
{{- .Values.documentationUrl | trimSuffix "/" }}/runbooks
{{- end }}
{{- end }}

{{/* The address of an alert's runbook; empty if the chart knows none. */}}
{{- define "balanced-source.runbook" -}}
{{- with include "balanced-source.runbookFolder" .root }}
{{- printf "%s/%s%s" . $.alert (ternary ".md" "/" (not (empty $.root.Values.metrics.prometheusRule.runbookUrl))) }}
{{- end }}
{{- end }}

{{/* Fills in the address of the runbooks in a dashboard, or removes the links that would lead nowhere. */}}
{{- define "balanced-source.runbooks" -}}
{{- $url := include "balanced-source.runbookFolder" .root }}
{{- $variables := list }}
{{- range $variable := .dashboard.templating.list }}
{{- if and (eq $variable.name "runbooks") $url }}
{{- $_ := set $variable "query" $url }}
{{- $_ := set $variable "current" (dict "selected" true "text" $url "value" $url) }}
{{- $_ := set $variable "hide" 2 }}
{{- end }}
{{- if or (ne $variable.name "runbooks") $url }}
{{- $variables = append $variables $variable }}
{{- end }}
{{- end }}
{{- $_ := set .dashboard.templating "list" $variables }}
{{- range .dashboard.panels }}
{{- if not $url }}
{{- $_ := unset . "links" }}
{{- else if $.root.Values.metrics.prometheusRule.runbookUrl }}
{{- range .links }}
{{- $_ := set . "url" (.url | trimSuffix "/" | printf "%s.md") }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "balanced-source.validate" -}}
{{- include "balanced-source.validateNames" . }}
{{- include "balanced-source.validateCrds" . }}
{{- include "balanced-source.validateExtras" . }}
{{- include "balanced-source.validateSelector" . }}
{{- include "balanced-source.validateLease" . }}
{{- if eq (int .Values.metrics.port) (int .Values.probes.port) }}
{{- fail (printf "metrics.port and probes.port are both %d: give each its own port" (int .Values.probes.port)) }}
{{- end }}
{{- if .Values.page.enabled }}
{{- range $other := list "metrics" "probes" }}
{{- if eq (int $.Values.page.port) (int (index $.Values $other).port) }}
{{- fail (printf "page.port and %s.port are both %d: give each its own port" $other (int $.Values.page.port)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (not .Values.leaderElection.enabled) (eq (default "" .Values.strategy.type) "RollingUpdate") }}
{{- fail "strategy.type RollingUpdate needs leaderElection.enabled: the old and the new pod would work on the same sources. Remove strategy" }}
{{- end }}
{{- if and .Values.podDisruptionBudget.enabled (gt (int .Values.replicas) 1) }}
{{- $least := include "balanced-source.minAvailable" . }}
{{- $most := .Values.podDisruptionBudget.maxUnavailable }}
{{- if kindIs "invalid" $most | not }}
{{- if kindIs "invalid" .Values.podDisruptionBudget.minAvailable | not }}
{{- fail "podDisruptionBudget has minAvailable and maxUnavailable: Kubernetes takes only one of them. Set the other to null" }}
{{- end }}
{{- if has (toString $most) (list "0" "0%") }}
{{- fail (printf "podDisruptionBudget.maxUnavailable is %s: no node could ever be drained. Set it to at least 1" (toString $most)) }}
{{- end }}
{{- $least = "0" }}
{{- end }}
{{- $pods := int $least }}
{{- if hasSuffix "%" $least }}
{{- /* Kubernetes rounds up */}}
{{- $pods = div (add (mul (trimSuffix "%" $least | int) (int .Values.replicas)) 99) 100 }}
{{- end }}
{{- if ge (int $pods) (int .Values.replicas) }}
{{- fail (printf "podDisruptionBudget.minAvailable is %s with %d replicas: no node could ever be drained. Set it to less than replicas" $least (int .Values.replicas)) }}
{{- end }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection.enabled) }}
{{- fail "replicas > 1 needs leaderElection.enabled: two operators would work on the same sources" }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled }}
{{- fail "set at most one of metrics.serviceMonitor.enabled and metrics.podMonitor.enabled: everything would be scraped twice" }}
{{- end }}
{{- if and (eq (default "" .Values.dnsPolicy) "None") (not (default dict .Values.dnsConfig).nameservers) }}
{{- fail "dnsPolicy None needs dnsConfig.nameservers: without them no name could be resolved" }}
{{- end }}
{{- include "balanced-source.validateMonitors" . }}
{{- include "balanced-source.validateAlerts" . }}
{{- end }}

{{/* A key that stands twice would be invalid YAML. */}}
{{- define "balanced-source.validateMonitors" -}}
{{- $metrics := .Values.metrics }}
{{- range $path, $monitor := dict "serviceMonitor" $metrics.serviceMonitor "podMonitor" $metrics.podMonitor "drivers.podMonitor" $metrics.drivers.podMonitor }}
{{- range $key, $_ := $monitor.endpointAdditionalProperties }}
{{- if has $key (list "port" "interval" "scrapeTimeout" "honorLabels" "relabelings" "metricRelabelings") }}
{{- fail (printf "metrics.%s.endpointAdditionalProperties must not set %s: the chart sets it" $path $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Alerts join series by namespace and source: with one namespace for all, a source hides others of its name. */}}
{{- define "balanced-source.validateAlerts" -}}
{{- if .Values.metrics.prometheusRule.enabled }}
{{- range $name := list "serviceMonitor" "podMonitor" }}
{{- $monitor := index $.Values.metrics $name }}
{{- if and $monitor.enabled (not $monitor.honorLabels) (not (contains "exported_namespace" (toJson $monitor.metricRelabelings))) }}
{{- fail (printf "metrics.prometheusRule needs metrics.%s.honorLabels: without it all sources have the namespace of the operator, and one hides another in the alerts. Set it to true, or restore namespace from exported_namespace in metrics.%s.metricRelabelings" $name $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Names of Services and values of labels have at most 63 characters, and nothing may be cut off in silence. */}}
{{- define "balanced-source.validateNames" -}}
{{- $name := default (printf "%s-%s" .Release.Name (include "balanced-source.name" .)) .Values.fullnameOverride }}
{{- if and (not .Values.fullnameOverride) (contains (include "balanced-source.name" .) .Release.Name) }}
{{- $name = .Release.Name }}
{{- end }}
{{- if gt (len (default "" .Values.nameOverride)) 63 }}
{{- fail (printf "nameOverride %s has %d characters: use at most 63" .Values.nameOverride (len .Values.nameOverride)) }}
{{- end }}
{{- $metrics := or .Values.metrics.service.enabled .Values.metrics.serviceMonitor.enabled }}
{{- $service := or $metrics (and .Values.page.enabled .Values.page.service.enabled) }}
{{- $most := ternary 55 63 $service }}
{{- if gt (len $name) $most }}
{{- fail (printf "the name %s has %d characters, and objects named after it would be cut off: set fullnameOverride to at most %d characters" $name (len $name) $most) }}
{{- end }}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" }}
{{- range $field := list "commonLabels" "podLabels" }}
{{- if hasKey (index $.Values $field) $key }}
{{- fail (printf "%s must not set %s: the Deployment selects its pods by this label" $field $key) }}
{{- end }}
{{- end }}
{{- if hasKey (default dict $.Values.metrics.service.labels) $key }}
{{- fail (printf "metrics.service.labels must not set %s: the ServiceMonitor selects the Service by this label" $key) }}
{{- end }}
{{- end }}
{{- range $key, $_ := .Values.commonAnnotations }}
{{- if or (hasPrefix "helm.sh/" $key) (hasPrefix "meta.helm.sh/" $key) }}
{{- fail (printf "commonAnnotations must not set %s: Helm acts on it" $key) }}
{{- end }}
{{- end }}
{{- if hasKey .Values.podLabels "balancedsource.io/component" }}
{{- fail "podLabels must not set balancedsource.io/component: the chart sets this label" }}
{{- end }}
{{- range $key := list "helm.sh/chart" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "balancedsource.io/component" }}
{{- if hasKey $.Values.commonLabels $key }}
{{- fail (printf "commonLabels must not set %s: the chart sets this label" $key) }}
{{- end }}
{{- end }}
{{- range $key, $_ := .Values.commonLabels }}
{{- if hasKey $.Values.podLabels $key }}
{{- fail (printf "commonLabels and podLabels both set %s: remove it from one of them" $key) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Helm deletes what leaves a release, and with the definition every BalancedSource of the cluster. */}}
{{- define "balanced-source.validateCrds" -}}
{{- if and (not .Values.crds.install) (not .Values.crds.keep) }}
{{- fail "crds.install=false with crds.keep=false would delete the definition and every BalancedSource at an upgrade: set crds.keep=true" }}
{{- end }}
{{- /* Empty without a cluster, as in helm template and a dry run of the client: then nothing is refused. */}}
{{- $crd := default dict (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "balancedsources.balancedsource.io") }}
{{- $found := dig "metadata" "annotations" dict $crd }}
{{- if and .Values.crds.install (not .Values.crds.allowOlder) }}
{{- /* Releases before the annotation have labelled the definition. Text that is no version tells nothing. */}}
{{- $there := dig "balancedsource.io/crd-version" (dig "metadata" "labels" "app.kubernetes.io/version" "" $crd) $found }}
{{- if regexMatch "^v?[0-9]+\\.[0-9]+\\.[0-9]+([-+][0-9A-Za-z.+-]+)?$" $there }}
{{- if gt ((semver $there).Compare (semver .Chart.Version)) 0 }}
{{- fail (printf "the definition (CRD) in this cluster is of release %s, and that of this chart, %s, is older: with it the API server drops the fields of sources that it does not know, for good. Set crds.install=false to keep the newer definition, or crds.allowOlder=true to replace it all the same. docs/how-to/upgrades.md says what an older operator does then" $there .Chart.Version) }}
{{- end }}
{{- end }}
{{- end }}
{{- if not .Values.crds.install }}
{{- /* Helm looks at the object as it is, whatever the values say now. */}}
{{- $isOurs := and (eq .Release.Name (dig "meta.helm.sh/release-name" "" $found)) (eq .Release.Namespace (dig "meta.helm.sh/release-namespace" "" $found)) }}
{{- if and $isOurs (ne "keep" (dig "helm.sh/resource-policy" "" $found)) }}
{{- fail "crds.install=false would delete the definition and every BalancedSource, because this release has installed the definition with crds.keep=false: upgrade once with crds.install=true and crds.keep=true before" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "balanced-source.validateSelector" -}}
{{- if include "balanced-source.namespaceSelector" . }}
{{- if .Values.watchNamespaces }}
{{- fail (printf "watchNamespaceSelector (%s) cannot be combined with watchNamespaces (%s): select namespaces either by their labels or by their names" .Values.watchNamespaceSelector (join ", " .Values.watchNamespaces)) }}
{{- end }}
{{- if .Values.admissionPolicies.namespaces.enabled }}
{{- fail "admissionPolicies.namespaces cannot be combined with watchNamespaceSelector: the policy would forbid sources in namespaces of other releases" }}
{{- end }}
{{- end }}
{{- end }}

{{/* A second release in a namespace would stand by for the first one, ready, and serve none of its sources. */}}
{{- define "balanced-source.validateLease" -}}
{{- $lease := lookup "coordination.k8s.io/v1" "Lease" .Release.Namespace "balanced-source-operator" }}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $lease }}
{{- if and .Values.leaderElection.enabled $owner (ne $owner .Release.Name) }}
{{- fail (printf "the Lease of namespace %s belongs to release %s: install each release in a namespace of its own" .Release.Namespace $owner) }}
{{- end }}
{{- end }}

{{/* What is added to the pod must not collide with what is there: the API server's words would not name the value. */}}
{{- define "balanced-source.validateExtras" -}}
{{- $names := list "NAMESPACES" "NAMESPACE_SELECTOR" "SPARK_CONF" "METRICS_PORT" "DRIVER_METRICS_PORT" "PROBE_PORT" "PAGE_PORT" "PAGE_HOST" "PAGE_TOKEN_FILE" "INSTANCE" "IDENTITY" "LEASE_NAMESPACE" }}
{{- range $name, $_ := .Values.settings }}
{{- $names = append $names (snakecase $name | upper) }}
{{- end }}
{{- range .Values.extraEnv }}
{{- if has (trimPrefix "BALANCED_SOURCE_" .name) $names }}
{{- if hasPrefix "BALANCED_SOURCE_" .name }}
{{- fail (printf "extraEnv must not set %s: the chart sets it from a value of its own" .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $field, $names := dict "extraVolumes" (list "tmp" "page-token") "initContainers" (list "operator") "extraContainers" (list "operator") }}
{{- range $entry := index $.Values $field }}
{{- if has $entry.name $names }}
{{- fail (printf "%s must not use the name %s: the chart does" $field $entry.name) }}
{{- end }}
{{- $names = append $names $entry.name }}
{{- end }}
{{- end }}
{{- range .Values.extraVolumeMounts }}
{{- if has (trimSuffix "/" .mountPath) (list "/tmp" "/etc/balanced-source/page") }}
{{- fail (printf "extraVolumeMounts must not use %s: the chart mounts a volume there" .mountPath) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Objects that belong to a source of this release: operators of other releases write in other namespaces. */}}
{{- define "balanced-source.ownedObjects" -}}
{{- with .Values.watchNamespaces }}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- end }}
objectSelector:
  matchExpressions:
    - {key: balancedsource.io/uid, operator: Exists}
{{- end }}

{{- define "balanced-source.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  {{- include "balanced-source.labelsAndAnnotations" (dict "root" .root) | nindent 2 }}
spec:
  policyName: {{ .name }}
  validationActions: {{ toJson .root.Values.admissionPolicies.actions }}
{{- end }}
