//! What can be typed.

pub(crate) mod api_key;
pub(crate) mod app;
pub(crate) mod appset;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod catalog;
pub(crate) mod gateway;
pub(crate) mod gitops;
pub(crate) mod golden_path;
pub(crate) mod identity;
pub(crate) mod image;
pub(crate) mod keys;
pub(crate) mod machines;
pub(crate) mod node;
pub(crate) mod oidc;
pub(crate) mod render;
pub(crate) mod repo;
pub(crate) mod syncagent;
pub(crate) mod trust;
pub(crate) mod undelete;
pub(crate) mod vm;
pub(crate) mod why;
pub(crate) mod workspace;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use audit::AuditFlags;
use gateway::GatewayFlags;
use machines::MachineFlags;
use oidc::OidcFlags;

/// A GitOps virtual-machine platform in one process.
#[derive(Parser)]
#[command(name = "fairway", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start Fairway.
    Up(Box<Up>),
    /// Stop Fairway.
    Down(Down),
    /// Show whether Fairway runs, and where.
    Status(Status),
    /// Print the administrator's kubeconfig, or add it to a file of your own.
    Kubeconfig(Kubeconfig),
    /// Sign in, and write a kubeconfig that refreshes itself.
    Login(Box<identity::Login>),
    /// Sign out of what `login` signed in to.
    Logout(identity::Logout),
    /// Show who the server takes you for.
    Whoami(identity::Whoami),
    /// Give kubectl or git the token of a sign-in; they run this themselves.
    #[command(hide = true)]
    Credential(identity::Credential),
    /// Make, list, disable and remove the users of an organisation, and set their passwords.
    User(identity::User),
    /// Make, list and fill the groups of an organisation.
    Group(identity::Group),
    /// Make, list, show and delete organisations.
    Org(identity::Org),
    /// Register programs that people sign in to.
    OidcClient(identity::OidcClient),
    /// Make, list, enter and delete workspaces.
    #[command(visible_alias = "ws")]
    Workspace(workspace::Workspace),
    /// Show, sync and delete Applications.
    App(app::App),
    /// Show, create and delete ApplicationSets.
    Appset(appset::AppSet),
    /// Show the projects of Applications.
    Proj(appset::Project),
    /// Add, list and forget clusters that Applications deploy to.
    Cluster(appset::Cluster),
    /// Show Fairway's own certificates, and replace them.
    Certs(Certs),
    /// Make this computer trust Fairway's certificate authority.
    Trust(trust::Trust),
    /// Save the whole state as one file, and bring it back.
    Backup(backup::Backup),
    /// List, rotate and drop encryption and signing keys.
    Keys(keys::Keys),
    /// Show what a chart, a kustomization or a directory of manifests comes to.
    Render(Box<render::Render>),
    /// Bring back what a sync has deleted.
    Undelete(undelete::Undelete),
    /// Make, list, clone, mirror and delete Git repositories.
    Repo(repo::Repo),
    /// List and show software templates.
    Template(golden_path::Template),
    /// Make something by a software template: answer its questions and watch it happen.
    New(Box<golden_path::New>),
    /// Show, retry and take back runs of software templates.
    #[command(visible_alias = "voyages")]
    Voyage(golden_path::Voyage),
    /// List, register, search and judge entities of the software catalog.
    Catalog(catalog::Catalog),
    /// Start, stop, reach and examine virtual machines.
    Vm(Box<vm::Vm>),
    /// Show why something does not do what it is for: the first broken link from the form over Git and the machine to the gateway.
    Why(Box<why::Why>),
    /// Show why a request is answered as it is, what is published, and how far limits are used up.
    Gateway(Box<gateway::Gateway>),
    /// Ask for keys to published APIs, approve them, print and delete them.
    ApiKey(api_key::ApiKey),
    /// Build, list, import and forget disk images.
    Image(image::Image),
    /// Run the machines of this host for a Fairway elsewhere.
    Node(Box<node::Node>),
    /// Publish kinds of a service cluster into workspaces, and keep their objects in step.
    Syncagent(Box<syncagent::Syncagent>),
    /// Show versions.
    Version(Version),
    /// Print a completion script for your shell.
    Completion(Completion),
}

/// Where state lives.
#[derive(Args, Clone, Debug)]
pub(crate) struct Data {
    /// Directory of the installation's state [default: ~/.local/share/fairway].
    #[arg(long = "data", value_name = "DIR", env = "FAIRWAY_DATA")]
    pub dir: Option<PathBuf>,
}

/// Options of `up`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Up {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// Address of the Kubernetes API [default: 127.0.0.1:6443].
    #[arg(long, value_name = "ADDR:PORT", env = "FAIRWAY_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Address of the web listener: Git and more, by host name [default: 127.0.0.1, a thousand ports
    /// above --listen: 7443].
    #[arg(long, value_name = "ADDR:PORT", env = "FAIRWAY_WEB_LISTEN")]
    pub web_listen: Option<SocketAddr>,
    /// What the names of the web listener's sites end with: git.NAME, id.NAME, portal.NAME, and apps.NAME for what is published
    /// [default: fairway.localhost].
    #[arg(long, value_name = "NAME", env = "FAIRWAY_DOMAIN")]
    pub domain: Option<String>,
    /// Hosts that webhooks of repositories may call, and where other providers of realms may be, separated by commas: external,
    /// private, loopback, networks, patterns of names, or * [default: external].
    #[arg(long, value_name = "HOSTS", env = "FAIRWAY_WEBHOOK_ALLOWED_HOSTS")]
    pub webhook_allowed_hosts: Option<String>,
    /// Directory of ConfigManagementPlugins (plugin.yaml) whose programs Applications may use [default: none].
    #[arg(long, value_name = "DIR", env = "FAIRWAY_CONFIG_MANAGEMENT_PLUGINS")]
    pub config_management_plugins: Option<PathBuf>,
    /// Address at which others reach the Kubernetes API, for the endpoints of the Service `kubernetes` [default: the
    /// address of --listen].
    #[arg(long, value_name = "ADDR", env = "FAIRWAY_ADVERTISE_ADDRESS")]
    pub advertise_address: Option<IpAddr>,
    /// Address under which users reach the Kubernetes API, such as https://api.example.com:6443, for the URLs of workspaces
    /// and of virtual workspaces [default: the address of --advertise-address or --listen].
    #[arg(long, value_name = "URL", env = "FAIRWAY_EXTERNAL_URL")]
    pub external_url: Option<String>,
    /// Return as soon as Fairway is ready, and leave it running.
    #[arg(long)]
    pub detach: bool,
    /// Serve this certificate (PEM) instead of one from Fairway's own authority.
    #[arg(long, value_name = "FILE", requires = "tls_key", env = "FAIRWAY_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// Key of --tls-cert (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert", env = "FAIRWAY_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// More host names and addresses for which Fairway's own certificate shall be valid.
    #[arg(
        long = "tls-san",
        value_name = "NAME",
        env = "FAIRWAY_TLS_SAN",
        value_delimiter = ','
    )]
    pub tls_san: Vec<String>,
    /// How long Fairway's own certificates are valid, and the longest that it signs for others, such as 720h [default:
    /// 8760h].
    #[arg(long, value_name = "TIME", env = "FAIRWAY_CERT_DURATION")]
    pub cert_duration: Option<String>,
    /// The audit log.
    #[command(flatten)]
    pub audit: AuditFlags,
    /// Machines.
    #[command(flatten)]
    pub machines: MachineFlags,
    /// Gateways.
    #[command(flatten)]
    pub gateway: GatewayFlags,
    /// OIDC issuers.
    #[command(flatten)]
    pub oidc: OidcFlags,
    /// What to log: error, warn, info, debug, trace, or a filter such as info,fairway_kernel_store=debug [default: info].
    #[arg(long, value_name = "FILTER", env = "FAIRWAY_LOG")]
    pub log: Option<String>,
}

/// Options of `down`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Down {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// Seconds to wait for the end.
    #[arg(long, default_value_t = 30)]
    pub timeout: u64,
}

/// Options of `status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Status {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `kubeconfig`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Kubeconfig {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// Add the `fairway` context to this file instead of printing. Everything else in the file stays as it is.
    #[arg(long, value_name = "FILE")]
    pub merge: Option<PathBuf>,
    /// Make it for this workspace, such as root:acme; the context has its name.
    #[arg(long, value_name = "PATH")]
    pub workspace: Option<String>,
}

/// Options of `certs`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Certs {
    /// What to do.
    #[command(subcommand)]
    pub command: CertsCommand,
}

/// The commands of `certs`.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum CertsCommand {
    /// Show every certificate: for whom, by whom, until when.
    List(CertsList),
    /// Make new certificates in place of the server's or the administrator's. A running server takes them up by itself.
    Renew(CertsRenew),
    /// Replace the certificate authority. The former one stays trusted until you forget it.
    RotateCa(CertsRotate),
    /// Trust the present certificate authority alone.
    ForgetOldCa(CertsForget),
}

/// Options of `certs list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CertsList {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `certs renew`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CertsRenew {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// Which one.
    #[arg(value_enum, conflicts_with = "all")]
    pub name: Option<CertsName>,
    /// All of them.
    #[arg(long)]
    pub all: bool,
}

/// Certificates by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CertsName {
    /// The server's.
    Serving,
    /// The administrator's.
    Admin,
    /// The certificate authority's; it is replaced by `rotate-ca`.
    Ca,
}

/// Options of `certs rotate-ca`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CertsRotate {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// Trust nothing that the former one has signed, from now on: for when its key may have been read by others.
    #[arg(long)]
    pub forget_old: bool,
}

/// Options of `certs forget-old-ca`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CertsForget {
    /// State.
    #[command(flatten)]
    pub data: Data,
}

/// Options of `version`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Version {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `completion`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Completion {
    /// Your shell.
    pub shell: Shell,
}

/// How something is printed.
#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// Print as JSON or YAML instead of text.
    #[arg(short = 'o', long = "output", value_enum)]
    pub format: Option<OutputFormat>,
}

/// Formats for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Output {
    /// Prints a value in the chosen format; without one, the text.
    pub(crate) fn print(&self, value: &serde_json::Value, text: &str) {
        match self.format {
            None => println!("{text}"),
            Some(OutputFormat::Json) => println!("{value:#}"),
            Some(OutputFormat::Yaml) => print!("{}", fairway_text_yaml::to_string(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
