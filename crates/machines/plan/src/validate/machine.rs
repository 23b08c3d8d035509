//! The machine as a whole: names, when it runs, what it brings along.

use std::net::IpAddr;

use fairway_kernel_kinds::pod::placement_faults;
use fairway_kernel_scalar::names;
use serde_json::Value;

use super::{CauseType, Causes};
use crate::memory_hotplug;
use crate::settings::Settings;
use crate::view::{DataVolumeSpec, InstanceSpec, Metadata, RunStrategy, VirtualMachineSpec};

/// Labels that only the platform writes.
pub(crate) const RESERVED_LABELS: [&str; 6] = [
    "kubevirt.io/created-by",
    "kubevirt.io/migrationJobUID",
    "kubevirt.io/nodeName",
    "kubevirt.io/migrationTargetNodeName",
    "kubevirt.io/schedulable",
    "kubevirt.io/install-strategy",
];

pub(super) fn metadata(
    path: &str,
    metadata: &Metadata,
    settings: &Settings,
    by_us: bool,
    causes: &mut Causes,
) {
    if !by_us
        && metadata
            .labels
            .keys()
            .any(|it| RESERVED_LABELS.contains(&it.as_str()))
    {
        causes.add(
            CauseType::NotSupported,
            format!("{path}.labels"),
            "creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited",
        );
    }
    let annotation = |name: &str| metadata.annotations.get(name).is_some_and(|it| !it.is_empty());
    if annotation("kubevirt.io/ignitiondata") && !settings.gate("ExperimentalIgnitionSupport") {
        let message = format!(
            "ExperimentalIgnitionSupport feature gate is not enabled in kubevirt-config, invalid entry \
             {path}.annotations.kubevirt.io/ignitiondata"
        );
        causes.invalid(format!("{path}.annotations"), message);
    }
    if annotation("hooks.kubevirt.io/hookSidecars") && !settings.gate("Sidecar") {
        let message = format!(
            "sidecar feature gate is not enabled in kubevirt-config, invalid entry \
             {path}.annotations.hooks.kubevirt.io/hookSidecars"
        );
        causes.invalid(format!("{path}.annotations"), message);
    }
}

pub(super) fn names(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    if !spec.hostname.is_empty() {
        let wrong = names::is_dns1123_label(&spec.hostname);
        if !wrong.is_empty() {
            let field = format!("{path}.hostname");
            let message = format!(
                "{field} does not conform to the kubernetes DNS_LABEL rules : {}",
                wrong.join(", ")
            );
            causes.invalid(field, message);
        }
    }
    if !spec.subdomain.is_empty() {
        let wrong = names::is_dns1123_subdomain(&spec.subdomain);
        if !wrong.is_empty() {
            let field = format!("{path}.subdomain");
            let message = format!(
                "{field} does not conform to the kubernetes DNS_SUBDOMAIN rules : {}",
                wrong.join(", ")
            );
            causes.invalid(field, message);
        }
    }
}

pub(super) fn start_strategy(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let Some(strategy) = spec.start_strategy.as_deref() else {
        return;
    };
    let field = format!("{path}.startStrategy");
    if strategy != "Paused" {
        causes.invalid(
            &field,
            format!("{field} is set with an unrecognized option: {strategy}"),
        );
    } else if spec.liveness_probe.is_some() {
        let message = format!(
            "either {field} or {path}.livenessProbe should be provided.Pausing VMI with LivenessProbe is not supported"
        );
        causes.invalid(&field, message);
    }
}

/// Where a machine may run is said as pods say it. Upstream leaves `affinity` out of the paths.
pub(super) fn placement(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let faults = placement_faults(
        path,
        spec.affinity.as_ref(),
        spec.topology_spread_constraints.as_ref(),
    );
    for fault in faults {
        causes.invalid(fault.path.to_string(), fault.to_string());
    }
}

pub(super) fn architecture_is_ours(
    path: &str,
    spec: &InstanceSpec,
    settings: &Settings,
    causes: &mut Causes,
) {
    let ours = spec.architecture.is_empty() || spec.architecture == settings.architecture;
    if !ours && !settings.gate("MultiArchitecture") {
        let field = format!("{path}.architecture");
        let message = format!(
            "MultiArchitecture feature gate is not enabled in kubevirt-config, invalid entry {field}"
        );
        causes.required(field, message);
    }
}

pub(super) fn architecture_is_known(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    if !["amd64", "s390x", "arm64"].contains(&spec.architecture.as_str()) {
        let message = format!("unsupported architecture: {}", spec.architecture);
        causes.invalid(format!("{path}.architecture"), message);
    }
}

pub(super) fn run_strategy(path: &str, spec: &VirtualMachineSpec, causes: &mut Causes) {
    let field = format!("{path}.running");
    match (spec.running, spec.run_strategy.as_deref()) {
        (Some(_), Some(_)) => causes.invalid(
            field,
            "Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy \
             instead",
        ),
        (None, None) => causes.invalid(field, "RunStrategy must be specified"),
        _ => {}
    }
    if let Some(word) = spec
        .run_strategy
        .as_deref()
        .filter(|it| RunStrategy::parse(it).is_none())
    {
        causes.invalid(
            format!("{path}.runStrategy"),
            format!("Invalid RunStrategy ({word})"),
        );
    }
}

pub(super) fn data_volume_templates(
    path: &str,
    spec: &VirtualMachineSpec,
    template: &InstanceSpec,
    causes: &mut Causes,
) {
    for (index, volume) in spec.data_volume_templates.iter().enumerate() {
        let field = format!("{path}.dataVolumeTemplate[{index}]");
        let name = &volume.metadata.name;
        if name.is_empty() {
            let field = format!("{field}.name");
            let message = format!("'name' field must not be empty for DataVolumeTemplate entry {field}.");
            causes.required(field, message);
            continue;
        }
        if let Some((part, problem)) = template_problem(&volume.spec) {
            causes.invalid(format!("{field}.{part}"), problem);
            continue;
        }
        let used = template.volumes.iter().any(|it| {
            it.data_volume.as_ref().is_some_and(|it| it.name == *name)
                || it
                    .persistent_volume_claim
                    .as_ref()
                    .is_some_and(|it| it.claim_name == *name)
        });
        if !used {
            let message = format!(
                "DataVolumeTemplate entry {field} must be referenced in the VMI template's 'volumes' list"
            );
            causes.required(field, message);
        }
    }
}

/// What is wrong with a disk that a machine brings along, and where.
fn template_problem(spec: &DataVolumeSpec) -> Option<(&'static str, &'static str)> {
    let claim = match (&spec.pvc, &spec.storage) {
        (None, None) => return Some(("PVC.Storage", "Missing Data volume PVC or Storage")),
        (Some(_), Some(_)) => {
            let problem = "Duplicate storage definition, both target storage and target pvc defined";
            return Some(("PVC.Storage", problem));
        }
        (Some(claim), None) | (None, Some(claim)) => claim,
    };
    let is_external = claim["dataSource"].is_object() || claim["dataSourceRef"].is_object();
    match (is_external, &spec.source, &spec.source_ref) {
        (true, None, None) => None,
        (true, _, _) => Some((
            "source",
            "External population is incompatible with Source and SourceRef",
        )),
        (false, None, None) => Some((
            "source.sourceRef",
            "Data volume should have either Source, SourceRef, or be externally populated",
        )),
        (false, None, Some(_)) => None,
        (false, Some(source), _) => {
            let sources = source.as_object().into_iter().flat_map(|it| it.values());
            match sources.filter(|it| !it.is_null()).count() {
                0 => Some(("source", "Missing dataVolume valid source")),
                1 => None,
                _ => Some(("source", "Multiple dataVolume sources")),
            }
        }
    }
}

pub(super) fn live_update(path: &str, template: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    if !settings.live_update {
        return;
    }
    // How many sockets there may be was checked with the instance's spec.
    let most = template.domain.memory.as_ref().and_then(|it| it.max_guest);
    if most.is_some()
        && let Err(error) = memory_hotplug::check(template, most)
    {
        causes.invalid(
            format!("{path}.template.spec.domain.memory.guest"),
            error.to_string(),
        );
    }
}

pub(super) fn dns(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let policy = spec.dns_policy.as_str();
    if !["", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"].contains(&policy) {
        let message = format!(
            "DNSPolicy: {policy} is not supported, valid values: [ClusterFirstWithHostNet ClusterFirst Default None ]"
        );
        causes.add(CauseType::NotSupported, format!("{path}.dnsPolicy"), message);
    }
    let field = format!("{path}.dnsConfig");
    let Some(config) = &spec.dns_config else {
        if policy == "None" {
            causes.required(field, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        return;
    };
    let texts = |name: &str| -> Vec<&str> {
        config[name]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    let servers = texts("nameservers");
    if policy == "None" && servers.is_empty() {
        causes.required(
            "nameservers",
            "must provide at least one DNS nameserver when `dnsPolicy` is None",
        );
    }
    if servers.len() > 3 {
        let message = format!("must not have more than 3 nameservers: [{}]", servers.join(" "));
        causes.invalid("nameservers", message);
    }
    for server in servers.iter().filter(|it| it.parse::<IpAddr>().is_err()) {
        causes.invalid("nameservers", format!("must be valid IP address: {server}"));
    }
    let searches = texts("searches");
    if searches.len() > 6 {
        causes.invalid("searchDomains", "must not have more than 6 search paths");
    }
    if searches.join(" ").len() > 256 {
        let message = "must not have more than 256 characters (including spaces) in the search list";
        causes.invalid("searchDomains", message);
    }
    for message in searches.iter().flat_map(|it| names::is_dns1123_subdomain(it)) {
        causes.invalid("searchDomains", message);
    }
    let options = config["options"].as_array().into_iter().flatten();
    if options
        .into_iter()
        .any(|it| it["name"].as_str().unwrap_or_default().is_empty())
    {
        causes.invalid("options", "Option.Name must not be empty");
    }
}
