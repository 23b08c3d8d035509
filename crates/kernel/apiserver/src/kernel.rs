//! The kernel, put together: everything that a request may need, in one place.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use fairway_kernel_store::Store;
use fairway_kernel_store::value::KeyRing;
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::admission::Limits;
use crate::audit::Audit;
use crate::authn::token::Tokens;
use crate::authorize::Authorizer;
use crate::cache::{Cache, LoadError};
use crate::chance::{Clock, Random};
use crate::custom::Definitions;
use crate::inflight::Inflight;
use crate::metrics::Metrics;
use crate::storage::Storage;

/// An API server, without its listeners.
pub struct Kernel {
    /// State.
    pub storage: Storage,
    /// Which resources each workspace has.
    pub apis: crate::apis::Apis,
    /// What workspaces bind from exports.
    pub bound: crate::custom::Bound,
    /// Which workspaces there are.
    pub workspaces: Arc<crate::workspaces::Workspaces>,
    /// What domains serve.
    pub api_services: ArcSwap<crate::api_services::ApiServices>,
    /// Who may do what.
    pub authorizer: Arc<Authorizer>,
    /// What limits each namespace.
    pub limits: Arc<Limits>,
    /// Service-account tokens.
    pub tokens: Tokens,
    /// Whose tokens are trusted besides our own.
    pub issuers: crate::authn::oidc::Issuers,
    /// Whose tokens domains know.
    pub guests: crate::authn::GuestBooks,
    /// Who did what.
    pub audit: Audit,
    /// Figures.
    pub metrics: Metrics,
    /// How many requests at once.
    pub inflight: Inflight,
    /// The time.
    pub clock: Clock,
    /// Randomness.
    pub random: Random,
    /// Becomes true when the server ends; watches end with it.
    pub shutdown: watch::Sender<bool>,
    /// Names that CRDs have.
    pub accepted_names: crate::custom::AcceptedNames,
    /// Which policies judge writes.
    pub policies: Arc<crate::admission::policy::Policies>,
    /// Where Services get their addresses and ports.
    pub service_network: crate::admission::service::ServiceNetwork,
    /// Figures of what runs beside the kernel, in the same text form.
    pub more_metrics: crate::metrics::Beside,
    /// Figures that somebody has to be asked for when they are wanted, such as those of running machines.
    pub asked_metrics: std::sync::OnceLock<Box<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>>,
    /// Compressed pieces of lists.
    pub gzip: crate::http::gzip::Pieces,
    /// Whether start-up has finished.
    pub ready: std::sync::atomic::AtomicBool,
}

/// What a kernel is made from.
pub struct KernelOptions {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Keys for what is encrypted at rest.
    pub keys: Arc<KeyRing>,
    /// The service-account signing key, PKCS#8.
    pub token_key: Vec<u8>,
    /// The tokens' issuer. It must outlive changes of the address, or every token would be void after one.
    pub issuer: String,
    /// Where the keys that verify tokens can be read.
    pub jwks_uri: String,
    /// The audit log; `None`: no log is kept.
    pub audit_log: Option<crate::audit::Options>,
    /// Kinds that domains bring into every workspace.
    pub kinds: Vec<crate::custom::ProvidedKind>,
}

/// Why a kernel did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// State could not be read.
    #[error("the stored objects could not be loaded")]
    Load(#[from] LoadError),
    /// A key is unusable.
    #[error("{0}")]
    Key(String),
    /// The audit log cannot be written.
    #[error("the audit log {path} cannot be opened")]
    Audit {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Kernel {
    /// Loads state and makes everything ready to serve.
    pub async fn start(options: KernelOptions) -> Result<Arc<Self>, StartError> {
        let KernelOptions {
            store,
            keys,
            token_key,
            issuer,
            jwks_uri,
            audit_log,
            kinds,
        } = options;
        let tokens = Tokens::new(&token_key, issuer, jwks_uri).map_err(StartError::Key)?;
        let audit = match audit_log {
            None => Audit::off(),
            Some(options) => {
                let path = options.path.clone();
                Audit::open(options).map_err(|source| StartError::Audit { path, source })?
            }
        };
        let cache = Cache::load(Arc::clone(&store), Arc::clone(&keys)).await?;
        let bound = crate::custom::Bound::load(&store)
            .await
            .map_err(LoadError::Store)?;
        let authorizer = Authorizer::follow(&cache);
        let limits = Limits::follow(&cache);
        let workspaces = crate::workspaces::Workspaces::follow(&cache);
        let policies = crate::admission::policy::Policies::follow(&cache);
        let kernel = Arc::new(Self {
            storage: Storage { store, cache, keys },
            apis: crate::apis::Apis::new(kinds),
            bound,
            workspaces,
            api_services: ArcSwap::default(),
            authorizer,
            limits,
            tokens,
            issuers: crate::authn::oidc::Issuers::default(),
            guests: crate::authn::GuestBooks::default(),
            audit,
            metrics: Metrics::default(),
            inflight: Inflight::default(),
            clock: Clock,
            random: Random::default(),
            shutdown: watch::channel(false).0,
            accepted_names: crate::custom::AcceptedNames::default(),
            policies,
            service_network: crate::admission::service::ServiceNetwork::default(),
            more_metrics: crate::metrics::Beside::default(),
            asked_metrics: std::sync::OnceLock::new(),
            gzip: crate::http::gzip::Pieces::default(),
            ready: std::sync::atomic::AtomicBool::new(false),
        });
        Definitions::follow(&kernel);
        crate::custom::Bound::follow(&kernel).await;
        crate::compaction::start(&kernel);
        Ok(kernel)
    }

    /// Ends every watch and refuses what comes later.
    pub fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }
}
