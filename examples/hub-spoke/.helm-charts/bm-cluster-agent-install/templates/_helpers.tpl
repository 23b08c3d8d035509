{{/* The label that ties hosts, network settings and the discovery image of a cluster together. */}}
{{- define "cluster.infraEnv" -}}
infraenvs.agent-install.openshift.io: {{ .Values.cluster.name }}
{{- end }}

{{- define "cluster.metadata" -}}
name: {{ required "cluster.name is needed" .Values.cluster.name }}
namespace: {{ .Values.cluster.name }}
{{- end }}
