//! Options of `syncagent`, with the names that kcp's api-syncagent has for them.

use std::path::PathBuf;

use clap::Args;

/// Publish kinds of a service cluster into workspaces, and keep their objects in step.
#[derive(Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("reference").required(true)))]
pub(crate) struct Syncagent {
    /// Kubeconfig of the service cluster, where PublishedResources are and copies are made [default: as kubectl finds it].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Kubeconfig of the provider's workspace, whose server ends in /clusters/<workspace>.
    #[arg(long, value_name = "FILE")]
    pub kcp_kubeconfig: PathBuf,
    /// The APIExport that this agent keeps; its endpoint slice has the same name.
    #[arg(long, value_name = "NAME", group = "reference")]
    pub apiexport_ref: Option<String>,
    /// The APIExportEndpointSlice that leads to the consumers.
    #[arg(long, value_name = "NAME", group = "reference")]
    pub apiexportendpointslice_ref: Option<String>,
    /// The agent's name, which copies carry. It must not be changed later [default: <reference>-syncagent].
    #[arg(long, value_name = "NAME")]
    pub agent_name: Option<String>,
    /// Only PublishedResources that this label selector picks.
    #[arg(long, value_name = "SELECTOR", default_value = "")]
    pub published_resource_selector: String,
    /// Wait for a Lease on the service cluster, so that of several agents one works.
    #[arg(long)]
    pub enable_leader_election: bool,
    /// The namespace of that Lease.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub namespace: String,
    /// How many objects of a kind are worked on at once.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    pub workers: usize,
    /// Where Prometheus reads /metrics, over plain HTTP; 0: nowhere.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8085")]
    pub metrics_address: String,
    /// Where probes ask /healthz and /readyz, over plain HTTP; 0: nowhere.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0")]
    pub health_address: String,
    /// Reach the service cluster at this address instead of that of its kubeconfig.
    #[arg(long, value_name = "URL")]
    pub kubeconfig_host_override: Option<String>,
    /// Trust these certificates of the service cluster instead of those of its kubeconfig.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig_ca_file_override: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace, or a filter.
    #[arg(long, value_name = "FILTER", default_value = "info", env = "FAIRWAY_LOG")]
    pub log: String,
}
