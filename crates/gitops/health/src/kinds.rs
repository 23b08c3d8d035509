//! What this crate knows of kinds by itself. One file per family; a kind that is not named here has no health.

mod argoproj;
mod autoscaling;
mod batch;
mod cert_manager;
mod cluster;
mod gateway;
mod machines;
mod pod;
mod workloads;

use serde_json::Value;

use crate::Health;
use crate::view;

/// How a kind is judged.
type Rule = fn(&Value) -> Health;

/// Group, kind, rule.
const RULES: &[(&str, &str, Rule)] = &[
    ("", "PersistentVolumeClaim", cluster::persistent_volume_claim),
    ("", "Pod", pod::health),
    ("", "Service", cluster::service),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        cluster::custom_resource_definition,
    ),
    ("apiregistration.k8s.io", "APIService", cluster::api_service),
    ("apps", "DaemonSet", workloads::daemon_set),
    ("apps", "Deployment", workloads::deployment),
    ("apps", "ReplicaSet", workloads::replica_set),
    ("apps", "StatefulSet", workloads::stateful_set),
    ("argoproj.io", "AnalysisRun", argoproj::analysis_run),
    ("argoproj.io", "Application", argoproj::application),
    ("argoproj.io", "ApplicationSet", argoproj::application_set),
    ("argoproj.io", "CronWorkflow", argoproj::cron_workflow),
    ("argoproj.io", "Rollout", argoproj::rollout),
    ("argoproj.io", "Workflow", argoproj::workflow),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        autoscaling::horizontal_pod_autoscaler,
    ),
    ("batch", "CronJob", batch::cron_job),
    ("batch", "Job", batch::job),
    ("cdi.kubevirt.io", "DataVolume", machines::data_volume),
    ("cert-manager.io", "Certificate", cert_manager::certificate),
    ("cert-manager.io", "ClusterIssuer", cert_manager::cluster_issuer),
    ("cert-manager.io", "Issuer", cert_manager::issuer),
    ("extensions", "Ingress", cluster::ingress),
    (
        "gateway.networking.k8s.io",
        "BackendTLSPolicy",
        gateway::backend_tls_policy,
    ),
    ("gateway.networking.k8s.io", "GRPCRoute", gateway::route),
    ("gateway.networking.k8s.io", "Gateway", gateway::gateway),
    (
        "gateway.networking.k8s.io",
        "GatewayClass",
        gateway::gateway_class,
    ),
    ("gateway.networking.k8s.io", "HTTPRoute", gateway::route),
    ("gateway.networking.k8s.io", "TCPRoute", gateway::route),
    ("gateway.networking.k8s.io", "TLSRoute", gateway::route),
    ("kuadrant.io", "AuthPolicy", gateway::policy),
    ("kuadrant.io", "DNSPolicy", gateway::policy),
    ("kuadrant.io", "RateLimitPolicy", gateway::policy),
    ("kuadrant.io", "TLSPolicy", gateway::policy),
    ("kuadrant.io", "TokenRateLimitPolicy", gateway::policy),
    ("kubevirt.io", "VirtualMachine", machines::virtual_machine),
    (
        "kubevirt.io",
        "VirtualMachineInstance",
        machines::virtual_machine_instance,
    ),
    (
        "kubevirt.io",
        "VirtualMachineInstanceMigration",
        machines::migration,
    ),
    ("networking.k8s.io", "Ingress", cluster::ingress),
    ("policy", "PodDisruptionBudget", cluster::pod_disruption_budget),
    ("snapshot.kubevirt.io", "VirtualMachineRestore", machines::restore),
    (
        "snapshot.kubevirt.io",
        "VirtualMachineSnapshot",
        machines::snapshot,
    ),
];

/// The health of an object, or none for a kind without one.
pub fn health(object: &Value) -> Option<Health> {
    let (group, kind) = view::group_kind(object);
    rule(group, kind).map(|rule| rule(object))
}

/// Whether a kind has a health.
pub fn is_judged(group: &str, kind: &str) -> bool {
    rule(group, kind).is_some()
}

fn rule(group: &str, kind: &str) -> Option<Rule> {
    RULES
        .iter()
        .find(|(known_group, known_kind, _)| *known_group == group && *known_kind == kind)
        .map(|(_, _, rule)| *rule)
}

#[cfg(test)]
mod tests;
