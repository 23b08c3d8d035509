//! Flags of the machines that this process runs.

use std::net::IpAddr;

use clap::Args;

/// Whether machines run here, and how they are reached.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MachineFlags {
    /// Run no virtual machines here. Their objects are served all the same.
    #[arg(long, env = "FAIRWAY_NO_MACHINES")]
    pub no_machines: bool,
    /// Name of this host as a Node [default: its host name].
    #[arg(long, value_name = "NAME", env = "FAIRWAY_NODE_NAME")]
    pub node_name: Option<String>,
    /// Addresses of this host on which node ports of Services are opened, separated by commas [default: 127.0.0.1].
    #[arg(
        long,
        value_name = "ADDR",
        env = "FAIRWAY_NODE_ADDRESSES",
        value_delimiter = ','
    )]
    pub node_addresses: Vec<IpAddr>,
    /// Hosts that disk images may be fetched from, as for --webhook-allowed-hosts [default: external].
    #[arg(long, value_name = "HOSTS", env = "FAIRWAY_IMAGE_ALLOWED_HOSTS")]
    pub image_allowed_hosts: Option<String>,
}
