//! Verbs that lead into a machine: its console, its screen, its ports.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::switch;

/// Options of `vm console`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Console {
    /// The machine: NAME or NAMESPACE/NAME.
    #[arg(value_name = "VMI")]
    pub name: String,
    /// Minutes to wait until it runs.
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    pub timeout: u64,
}

/// Options of `vm vnc`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Vnc {
    /// A picture instead.
    #[command(subcommand)]
    pub command: Option<VncCommand>,
    /// The machine: NAME or NAMESPACE/NAME.
    #[arg(value_name = "VMI", required = true)]
    pub name: Option<String>,
    /// The address on which viewers are waited for, with --proxy-only.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// The port on which viewers are waited for [default: any].
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Start no viewer: print the port, and wait for one.
    #[arg(long = "proxy-only", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_proxy_only: bool,
}

/// What else can be done with a screen.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum VncCommand {
    /// Save a picture of the screen as PNG.
    Screenshot(Screenshot),
}

/// Options of `vm vnc screenshot`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Screenshot {
    /// The machine: NAME or NAMESPACE/NAME.
    #[arg(value_name = "VMI")]
    pub name: String,
    /// The file to write; - is standard output.
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: PathBuf,
    /// Move the pointer first, so that a screen saver ends.
    #[arg(short = 'm', long = "move-cursor", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub moves_cursor: bool,
}

/// What `vm ssh` and `vm scp` share.
#[derive(Args, Clone, Debug)]
pub(crate) struct Login {
    /// The user in the guest [default: $USER].
    #[arg(short = 'l', long, value_name = "NAME")]
    pub username: Option<String>,
    /// The private key [default: what ssh itself uses].
    #[arg(short = 'i', long, value_name = "FILE")]
    pub identity_file: Option<PathBuf>,
    /// The file of known hosts [default: what ssh itself uses].
    #[arg(long, value_name = "FILE")]
    pub known_hosts: Option<PathBuf>,
    /// The port of the guest.
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = 22)]
    pub port: u16,
    /// An option for ssh or scp, such as "-o StrictHostKeyChecking=no". May be repeated.
    #[arg(short = 't', long, value_name = "OPTION", allow_hyphen_values = true)]
    pub local_ssh_opts: Vec<String>,
    /// Always true: the ssh of this host is used.
    #[arg(long = "local-ssh", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "true", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide = true)]
    pub is_local: bool,
}

/// Options of `vm ssh`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ssh {
    /// The machine: [USER@][vm/|vmi/]NAME[.NAMESPACE] or [USER@]NAMESPACE/NAME.
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// A command to run there.
    #[arg(short = 'c', long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Option<String>,
    /// How.
    #[command(flatten)]
    pub login: Login,
}

/// Options of `vm scp`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Scp {
    /// From: a path, or [USER@][vm/|vmi/]NAME[.NAMESPACE]:PATH.
    pub source: String,
    /// To: the same. One of both is in the machine.
    pub destination: String,
    /// Whole directories.
    #[arg(short = 'r', long = "recursive", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_recursive: bool,
    /// Keep times and modes.
    #[arg(long = "preserve", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub preserves: bool,
    /// How.
    #[command(flatten)]
    pub login: Login,
}

/// Options of `vm port-forward`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PortForward {
    /// The machine: [vm/|vmi/]NAME[.NAMESPACE] or NAMESPACE/NAME.
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Ports: [tcp/]LOCAL[:REMOTE].
    #[arg(value_name = "PORT", required = true)]
    pub ports: Vec<String>,
    /// The address on which local ports are opened.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub address: String,
    /// Forward one port to standard input and output instead.
    #[arg(long = "stdio", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
          default_value = "false", default_missing_value = "true", require_equals = true, value_parser = switch,
          hide_default_value = true)]
    pub is_stdio: bool,
}

/// Options of `vm expose`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Expose {
    /// What: vm or vmi.
    #[arg(value_name = "TYPE")]
    pub kind: String,
    /// The machine: NAME or NAMESPACE/NAME.
    pub name: String,
    /// Name of the Service.
    #[arg(long = "name", value_name = "NAME")]
    pub service: String,
    /// The port of the Service [default: the ports that the machine's interface names].
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Name of the port.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub port_name: String,
    /// The port of the machine, by number or name [default: that of the Service].
    #[arg(long, value_name = "PORT", default_value = "", hide_default_value = true)]
    pub target_port: String,
    /// TCP or UDP.
    #[arg(long, value_name = "PROTOCOL", default_value = "TCP")]
    pub protocol: String,
    /// ClusterIP, NodePort or LoadBalancer.
    #[arg(long = "type", value_name = "TYPE", default_value = "ClusterIP")]
    pub service_type: String,
    /// The address of the Service, or None for a headless one [default: any].
    #[arg(long, value_name = "ADDR", default_value = "", hide_default_value = true)]
    pub cluster_ip: String,
    /// One more address that leads to the Service.
    #[arg(long, value_name = "ADDR", default_value = "", hide_default_value = true)]
    pub external_ip: String,
    /// IPv4, IPv6, or both with a comma.
    #[arg(long, value_name = "FAMILY", default_value = "", hide_default_value = true)]
    pub ip_family: String,
    /// SingleStack, PreferDualStack or RequireDualStack.
    #[arg(long, value_name = "POLICY", default_value = "", hide_default_value = true)]
    pub ip_family_policy: String,
}
