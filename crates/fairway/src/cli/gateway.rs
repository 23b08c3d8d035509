//! Flags of what publishes services, and `fairway gateway` on the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::gitops::{ListFormat, Place};

/// Whether Gateways are served here, and where.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GatewayFlags {
    /// Serve no Gateways and Routes here. Their objects are kept all the same.
    #[arg(long, env = "FAIRWAY_NO_GATEWAY")]
    pub no_gateway: bool,
    /// Address at which Gateways without an address of their own and Routes are served [default: 127.0.0.1].
    #[arg(long, value_name = "ADDR", env = "FAIRWAY_GATEWAY_ADDRESS")]
    pub gateway_address: Option<IpAddr>,
    /// Network out of which every Gateway gets an address of its own, such as 192.0.2.0/27; this host must have the addresses
    /// [default: none, Gateways share --gateway-address].
    #[arg(long, value_name = "NET", env = "FAIRWAY_GATEWAY_POOL")]
    pub gateway_pool: Option<String>,
    /// What host names of Routes end with that name none themselves [default: apps. and --domain].
    #[arg(long, value_name = "NAME", env = "FAIRWAY_GATEWAY_DOMAIN")]
    pub gateway_domain: Option<String>,
    /// Hosts that policies may call for keys, metadata and the like, as for --webhook-allowed-hosts [default: external].
    #[arg(long, value_name = "HOSTS", env = "FAIRWAY_GATEWAY_ALLOWED_HOSTS")]
    pub gateway_allowed_hosts: Option<String>,
    /// File that a line of JSON is written to for every request through Gateways and Routes; - is the standard output
    /// [default: none].
    #[arg(long, value_name = "FILE", env = "FAIRWAY_GATEWAY_ACCESS_LOG")]
    pub gateway_access_log: Option<PathBuf>,
    /// Begin a trace (traceparent) for requests that come without one; others keep theirs either way.
    #[arg(long, env = "FAIRWAY_GATEWAY_START_TRACES")]
    pub gateway_start_traces: bool,
    /// Refuse requests that a rate limit cannot be counted for, because an expression of it fails; without it they pass.
    #[arg(long, env = "FAIRWAY_GATEWAY_REFUSE_UNCOUNTED")]
    pub gateway_refuse_uncounted: bool,
    /// Address of the name server for published host names, while there are any [default: 127.0.0.1:10053].
    #[arg(long, value_name = "ADDR:PORT", env = "FAIRWAY_DNS_LISTEN")]
    pub dns_listen: Option<SocketAddr>,
}

/// Options of `gateway`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Gateway {
    /// What to do.
    #[command(subcommand)]
    pub command: GatewayCommand,
}

/// The commands of `gateway`.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum GatewayCommand {
    /// Show what would become of a request: listener, route, filters, policies, backend. Nothing is sent.
    Explain(Explain),
    /// List what is published, by host and path.
    Routes(Show),
    /// List the certificates of listeners.
    Certs(Show),
    /// List counters of rate limits.
    Limits(Show),
}

/// Options of `gateway explain`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Explain {
    /// GET, POST, ...
    pub method: String,
    /// With scheme, host and, if it is another than usual, port.
    pub url: String,
    /// A header of the request, such as 'Authorization: Bearer abc'; as often as it has some, the same name too.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Address of the client that would send it [default: this host].
    #[arg(long, value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Print it in this form instead.
    #[arg(short, long)]
    pub output: Option<ValueFormat>,
    /// The API.
    #[command(flatten)]
    pub place: Place,
}

/// How an answer is printed that has neither names nor columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValueFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Options of lists.
#[derive(Args, Clone, Debug)]
pub(crate) struct Show {
    /// Print it in this form instead.
    #[arg(short, long)]
    pub output: Option<ListFormat>,
    /// The API.
    #[command(flatten)]
    pub place: Place,
}
