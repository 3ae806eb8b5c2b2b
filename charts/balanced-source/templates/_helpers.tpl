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

{{- define "balanced-source.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* What the operator does to objects of the namespaces that it serves: exactly these calls, no others. */}}
{{- define "balanced-source.rules" -}}
- apiGroups: [balancedsource.io]
  resources: [balancedsources]
  verbs: [get, list, watch]
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
- apiGroups: [sparkoperator.k8s.io]
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
  # get tells whether one of that name belongs to somebody else
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}

{{- define "balanced-source.validate" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection.enabled) }}
{{- fail "replicas > 1 needs leaderElection.enabled: two operators would work on the same sources" }}
{{- end }}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled }}
{{- fail "set at most one of metrics.serviceMonitor.enabled and metrics.podMonitor.enabled: everything would be scraped twice" }}
{{- end }}
{{- end }}
