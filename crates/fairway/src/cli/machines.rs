//! Flags of the machines that this process runs.

use std::net::IpAddr;

use clap::{Args, ValueEnum};
use serde::Deserialize;

/// Whether machines run here, and how they are reached.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MachineFlags {
    /// Run no virtual machines here. Their objects are served all the same.
    #[arg(long, env = "FAIRWAY_NO_MACHINES")]
    pub no_machines: bool,
    /// This host.
    #[command(flatten)]
    pub host: HostFlags,
}

/// What carries frames between machines of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum MachineNetwork {
    /// The switch.
    #[default]
    User,
    /// The kernel, as far as the switch has allowed it.
    Tap,
    /// The kernel where it can.
    Auto,
}

/// A host that runs machines.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HostFlags {
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
    /// Port on the first of these addresses at which other nodes bring packets of their machines, encrypted. It is open while
    /// there are other nodes [default: 10262, or any other while that is taken].
    #[arg(long, value_name = "PORT", env = "FAIRWAY_TUNNEL_PORT")]
    pub tunnel_port: Option<u16>,
    /// What carries frames between machines of this host: `user`, the switch in this process; `tap`, the kernel in a network namespace, as far as
    /// the switch has allowed a connection (needs root, ip and nft); `auto`, the kernel where it can [default: user].
    #[arg(long, value_name = "HOW", env = "FAIRWAY_MACHINE_NETWORK")]
    pub machine_network: Option<MachineNetwork>,
    /// Addresses or networks, with a port if only one is meant, that machines may reach although they are this host's own, denied or
    /// closed, separated by commas.
    #[arg(
        long,
        value_name = "ADDR[:PORT]",
        env = "FAIRWAY_EGRESS_ALLOW",
        value_delimiter = ','
    )]
    pub egress_allow: Vec<String>,
    /// Networks that machines must not reach, beside this host, loopback and link-local addresses, separated by commas.
    #[arg(long, value_name = "NET", env = "FAIRWAY_EGRESS_DENY", value_delimiter = ',')]
    pub egress_deny: Vec<String>,
    /// Let machines reach nothing beyond their workspace but what --egress-allow names.
    #[arg(long, env = "FAIRWAY_EGRESS_CLOSED")]
    pub egress_closed: bool,
    /// Numbers of users that belong to machines, each of which runs as one of its own if this process runs as root; `none` lets machines
    /// run as the user of this process [default: 1900000000:1000000].
    #[arg(long, value_name = "FIRST:COUNT", env = "FAIRWAY_MACHINE_USERS")]
    pub machine_users: Option<String>,
    /// Hosts that disk images may be fetched from, as for --webhook-allowed-hosts [default: external].
    #[arg(long, value_name = "HOSTS", env = "FAIRWAY_IMAGE_ALLOWED_HOSTS")]
    pub image_allowed_hosts: Option<String>,
}
