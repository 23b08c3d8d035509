//! Options of `node`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::machines::HostFlags;
use super::workspace::Where;
use super::{Data, Output};

/// Run the machines of this host for a Fairway elsewhere.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Node {
    /// What else there is to do.
    #[command(subcommand)]
    pub command: Option<NodeCommand>,
    /// How it runs.
    #[command(flatten)]
    pub run: NodeRun,
}

/// The commands of `node`.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum NodeCommand {
    /// Make this host a node of a Fairway elsewhere: ask for a certificate, and keep it in the data directory.
    Join(NodeJoin),
    /// Make, list and delete the tokens with which hosts join. On the server.
    Token(NodeToken),
}

/// Options of `node join`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeJoin {
    /// State of this node.
    #[command(flatten)]
    pub data: Data,
    /// Address of the server, such as https://10.0.0.1:6443.
    #[arg(long, value_name = "URL", env = "FAIRWAY_SERVER")]
    pub server: String,
    /// The token, as `fairway node token create` printed it.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "FAIRWAY_NODE_TOKEN",
        hide_env_values = true
    )]
    pub token: String,
    /// The digest of the public key of the server's certificate authority, as printed beside the token.
    #[arg(long, value_name = "sha256:DIGEST")]
    pub ca_hash: String,
    /// Name of this host as a Node [default: its host name].
    #[arg(long, value_name = "NAME", env = "FAIRWAY_NODE_NAME")]
    pub node_name: Option<String>,
    /// Join again, although this host has joined already.
    #[arg(long)]
    pub again: bool,
    /// Seconds to wait for the certificate.
    #[arg(long, default_value_t = 60)]
    pub timeout: u64,
}

/// Options of `node token`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeToken {
    /// What to do.
    #[command(subcommand)]
    pub command: NodeTokenCommand,
}

/// The commands of `node token`.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum NodeTokenCommand {
    /// Make a token that is good for one host, and print how that one joins.
    Create(TokenCreate),
    /// List the tokens there are.
    #[command(visible_alias = "ls")]
    List(TokenList),
    /// Delete a token.
    Delete(TokenDelete),
}

/// Options of `node token create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokenCreate {
    /// How long it is good, such as 1h or 90m.
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub ttl: String,
    /// Let any number of hosts join with it until it expires.
    #[arg(long)]
    pub reusable: bool,
    /// Address of the server to print [default: that of the kubeconfig].
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `node token list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokenList {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Which server.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `node token delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokenDelete {
    /// The token, or what is before its dot.
    pub token: String,
    /// Which server.
    #[command(flatten)]
    pub place: Where,
}

/// Options of `node` itself.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeRun {
    /// State of this node: its machines, disks, images and kubeconfig. Not that of the server.
    #[command(flatten)]
    pub data: Data,
    /// Kubeconfig with which the server is reached [default: node.kubeconfig in the data directory].
    #[arg(long, value_name = "FILE", env = "FAIRWAY_NODE_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Reach the server at this address instead of that of the kubeconfig.
    #[arg(long, value_name = "URL", env = "FAIRWAY_SERVER")]
    pub server: Option<String>,
    /// This host.
    #[command(flatten)]
    pub host: HostFlags,
    /// End machines when the server has not heard of this node for so many seconds, so that they may be started elsewhere; 0: never, and
    /// only an operator's taint node.kubernetes.io/out-of-service releases the machines of a lost node.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 40,
        env = "FAIRWAY_FENCE_SECONDS"
    )]
    pub fence_seconds: u64,
    /// What to log: error, warn, info, debug, trace, or a filter.
    #[arg(long, value_name = "FILTER", default_value = "info", env = "FAIRWAY_LOG")]
    pub log: String,
}
