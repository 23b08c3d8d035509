//! Reads what `fairway-why-chain` judges, with the rights of whoever asks: from any object of the chain to all the others, both ways.
//!
//! ```text
//! Voyage ─made─► Repository ◄─repoURL─ Application ─tracks─► VirtualMachine ◄─selects─ Service ◄─backendRefs─ HTTPRoute ─► Gateway
//! ```
//!
//! Everything is one or two rounds of reads, a few at a time. What may not be read is told as such. It sees a [`kube::Client`] alone, so that
//! a command and a server can both ask.

mod api;
mod disk;
mod entry;
mod machines;
mod origin;
mod probe;
mod published;
mod read;

use fairway_why_chain::{Facts, Report, Subject, report};
use kube::Client;

pub use entry::Question;
use read::Reader;

/// Why nothing can be told.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// What was asked is no object, kind or address.
    #[error("{0}")]
    Input(String),
    /// There is no such object, and nobody speaks of one.
    #[error("{0}")]
    NotFound(String),
    /// The API does not answer.
    #[error("{0}")]
    Unreachable(String),
}

/// The places that are looked into.
#[derive(Clone)]
pub struct Places {
    /// The workspace.
    pub here: Client,
    /// The root of all workspaces, where images of everybody and nodes are, if it is another.
    pub root: Option<Client>,
}

/// Reads and judges.
pub async fn why(places: &Places, question: &Question) -> Result<Report, Failed> {
    Ok(report(&gather(places, question).await?))
}

/// Reads everything.
pub async fn gather(places: &Places, question: &Question) -> Result<Facts, Failed> {
    let reader = Reader::new(places.here.clone());
    let mut entry = entry::find(&reader, question).await?;
    entry.machine = disk::user(&reader, &entry).await;
    let mut facts = Facts {
        asked: Subject {
            kind: entry.kind.clone(),
            namespace: entry.namespace.clone(),
            name: entry.name.clone(),
        },
        object: entry.object.clone(),
        ..Facts::default()
    };
    origin::find(&reader, &entry, &mut facts).await;
    if entry.object.is_none() && entry.kind != "Host" && facts.voyage.is_none() && facts.application.is_none()
    {
        let unread = reader.unreadable();
        let why = unread.values().next();
        return Err(Failed::NotFound(format!(
            "there is no {} {} in namespace {:?}, and no Application or Voyage speaks of one; check name, namespace (-n) and workspace{}",
            entry.kind,
            entry.name,
            entry.namespace,
            why.map_or(String::new(), |it| format!(
                " (not everything could be read: {it})"
            ))
        )));
    }
    api::find(&reader, &entry, &mut facts).await;
    let spaces = published::find(&reader, &entry, &mut facts).await;
    // Whether a key is good has nothing to do with the machines behind the API.
    if entry.kind != "APIKey" {
        machines::find(&reader, places, &entry, &spaces, &mut facts).await;
    }
    disk::find(&reader, places, &entry, &mut facts).await;
    facts.unreadable = reader.unreadable();
    match reader.unreachable() {
        Some(why) => Err(Failed::Unreachable(why)),
        None => Ok(facts),
    }
}
