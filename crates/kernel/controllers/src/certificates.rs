//! Requests for certificates: those of nodes are approved, what is approved is signed, and what is over is removed.
//!
//! One watch feeds three controllers, with upstream's rules and the rights of upstream's `certificate-controller`. None of
//! them sees a key: they hand what shall be signed to a [`CertificateSigner`], which whoever wires them brings along.
//!
//! A certificate names a user for the whole server, whatever workspace it was asked for in. So only the root workspace's
//! are approved and signed; in others a request fails and says so, or whoever is an administrator there would make
//! himself one everywhere.

mod approve;
mod clean;
mod sign;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::cache::Cache;
use fairway_controller::error::{is_conflict, is_not_found};
use fairway_controller::{
    Attempt as _, Clients, Controller, Failure, Manager, ObjectKey, Outcome, Queue, watch,
};
use fairway_kernel_x509::Request;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition as Condition,
};
use kube::Error;
use kube::api::Api;
use kube::runtime::watcher;

use crate::{Setup, users};

const WORKERS: usize = 2;

/// Upstream's `--cluster-signing-duration`: what a certificate lasts at most, and if nothing else is asked for.
pub const SIGNING_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// What shall be signed. The request has been judged already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningJob {
    /// The request; its subject is kept as it is.
    pub request: Request,
    /// What the certificate may be used for, in the words of `spec.usages`.
    pub usages: Vec<String>,
    /// How long it shall be valid.
    pub duration: Duration,
}

/// Signs certificates with a key that the controllers never see.
pub trait CertificateSigner: Send + Sync {
    /// The certificate in PEM, or a sentence that says why there is none.
    fn sign(&self, job: &SigningJob) -> Result<String, String>;
}

type Requests = Arc<Cache<CertificateSigningRequest>>;

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let clients = manager.clients(users::CERTIFICATE_CONTROLLER);
    let requests: Requests = Arc::new(Cache::new(manager.reach()));
    let [approving, signing, cleaning]: [Queue<ObjectKey>; 3] = Default::default();
    let (to_approve, to_clean) = (approving.clone(), cleaning.clone());
    // A queue that nobody works on would only grow.
    let to_sign = setup.options.signer.is_some().then(|| signing.clone());
    manager.spawn(watch::follow_into(
        Api::<CertificateSigningRequest>::all(clients.every()),
        watcher::Config::default(),
        manager.shutdown(),
        Arc::clone(&requests),
        CertificateSigningRequest::clone,
        move |key| {
            if key.workspace.is_root() {
                to_approve.add(key.clone());
            }
            to_sign.iter().for_each(|queue| queue.add(key.clone()));
            to_clean.add(key);
        },
    ));
    let approver = approve::Approver {
        client: clients.root(),
        api: Api::all(clients.root()),
        tokens: Api::namespaced(manager.clients(users::NODE_JOINING).root(), "kube-system"),
        requests: Arc::clone(&requests),
    };
    let controller = Controller::new(approve::NAME, approving, approver).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    if let Some(signer) = &setup.options.signer {
        let signer = sign::Signing {
            clients: clients.clone(),
            requests: Arc::clone(&requests),
            signer: Arc::clone(signer),
            longest: setup.options.signing_duration,
        };
        let controller = Controller::new(sign::NAME, signing, signer).workers(WORKERS);
        manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
    }
    let controller = Controller::new(clean::NAME, cleaning, clean::Cleaner { clients, requests });
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// The requests of the workspace of one.
fn api_of(clients: &Clients, key: &ObjectKey) -> Api<CertificateSigningRequest> {
    Api::all(clients.of(&key.workspace))
}

/// The conditions of a request.
fn conditions(csr: &CertificateSigningRequest) -> impl Iterator<Item = &Condition> {
    csr.status.iter().flat_map(|s| s.conditions.iter().flatten())
}

fn has(csr: &CertificateSigningRequest, kind: &str) -> bool {
    conditions(csr).any(|c| c.type_ == kind && c.status == "True")
}

fn certificate(csr: &CertificateSigningRequest) -> Option<&[u8]> {
    let bytes = csr.status.as_ref()?.certificate.as_ref()?;
    (!bytes.0.is_empty()).then_some(&bytes.0[..])
}

/// What a write came to. An object that has changed or gone meanwhile is seen again through the watch.
fn written<T>(answer: Result<T, Error>, doing: &'static str) -> Result<Outcome, Failure> {
    match answer {
        Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(Outcome::Done),
        answer => answer.attempting(doing).map(|_| Outcome::Done),
    }
}

#[cfg(test)]
#[path = "certificates/fixtures.rs"]
mod fixtures;
