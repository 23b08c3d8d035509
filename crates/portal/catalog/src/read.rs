//! Reading a location: its file, the files that it names, what they are made of, within bounds.
//!
//! What is read is judged on the way; what cannot be read or is wrong is told, and stops nothing else.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::WorkspaceId;
use fairway_outbound::Outbound;
use fairway_portal_entity::ingest::{Spared, Wanted, annotate};
use fairway_portal_entity::place::{self, Hosted, LocationRef, Revision};
use fairway_portal_entity::{EntityRef, document, object, placeholders, validate};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

use crate::files::{Files, FilesError, Snapshot};

/// Files of one location, and how far they may lead from each other.
const MAX_FILES: usize = 1000;
const MAX_DEPTH: usize = 10;
/// Entities of one location.
const MAX_ENTITIES: usize = 10_000;
/// Problems that are kept.
const MAX_ERRORS: usize = 20;
const MAX_ERROR: usize = 1000;
/// How long another host may say nothing, one file may take, and all files elsewhere together.
const IDLE: Duration = Duration::from_secs(10);
const ONE_FETCH: Duration = Duration::from_secs(60);
const ALL_FETCHES: Duration = Duration::from_secs(300);

/// What is at a location.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub wanted: Vec<Wanted>,
    pub spared: Spared,
    pub errors: Vec<String>,
    /// Files that were read or looked for.
    pub files: Vec<String>,
    /// Hosted repositories that they are in, as `owner/name`.
    pub repositories: Vec<String>,
    /// The commit of the first, if it is hosted.
    pub commit: Option<String>,
    /// Something failed that may not fail another time.
    pub is_transient: bool,
    /// Something is elsewhere, where nobody tells us of changes.
    pub is_remote: bool,
}

impl Reading {
    fn problem(&mut self, mut text: String) {
        if let Some((end, _)) = text.char_indices().nth(MAX_ERROR) {
            text.truncate(end);
        }
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(text);
        }
    }
}

/// A file that is to be read.
struct Next {
    file: LocationRef,
    parent: String,
    depth: usize,
    is_optional: bool,
}

/// Why a file was not read.
enum Unread {
    Absent(String),
    Failed(String),
    Refused(String),
}

struct Reader<'r> {
    files: &'r dyn Files,
    outbound: &'r Outbound,
    workspace: &'r WorkspaceId,
    origin: &'r LocationRef,
    snapshots: HashMap<(String, String, Revision, bool), Arc<dyn Snapshot>>,
    deadline: Instant,
    reading: Reading,
}

/// Reads a location for a workspace.
pub(crate) async fn read(
    files: &dyn Files,
    outbound: &Outbound,
    workspace: &WorkspaceId,
    origin: &LocationRef,
) -> Reading {
    let mut reader = Reader {
        files,
        outbound,
        workspace,
        origin,
        snapshots: HashMap::new(),
        deadline: Instant::now() + ALL_FETCHES,
        reading: Reading::default(),
    };
    reader.all().await;
    let mut reading = reader.reading;
    reading.repositories.sort();
    reading.repositories.dedup();
    reading
}

impl Reader<'_> {
    async fn all(&mut self) {
        let own = object::location_entity(self.origin);
        let parent = EntityRef::of(&own).map(|reference| reference.to_string());
        self.reading.wanted.push(Wanted {
            entity: own,
            file: self.origin.clone(),
            parent: None,
        });
        let mut queue = VecDeque::from([Next {
            file: self.origin.clone(),
            parent: parent.unwrap_or_default(),
            depth: 0,
            is_optional: false,
        }]);
        let mut seen = HashSet::new();
        while let Some(next) = queue.pop_front() {
            if !seen.insert(next.file.clone()) {
                continue;
            }
            if seen.len() > MAX_FILES || next.depth > MAX_DEPTH {
                self.reading.spared.all = true;
                self.reading.problem(format!(
                    "{} is not read: a location may have {MAX_FILES} files, {MAX_DEPTH} steps from each other at most",
                    next.file
                ));
                break;
            }
            let read = match self.expand(&next).await {
                Ok(Some(more)) => {
                    queue.extend(more);
                    continue;
                }
                Ok(None) => {
                    self.reading.files.push(next.file.to_string());
                    self.content(&next.file, true).await
                }
                Err(unread) => Err(unread),
            };
            match read {
                Ok(content) => {
                    let more = self.documents(&next, &content).await;
                    queue.extend(more);
                }
                Err(Unread::Absent(_)) if next.is_optional => {}
                Err(unread) => {
                    let why = match unread {
                        Unread::Absent(why) => format!("NotFoundError: {why}"),
                        Unread::Refused(why) => format!("NotAllowedError: {why}"),
                        Unread::Failed(why) => {
                            self.reading.is_transient = true;
                            format!("Error: {why}")
                        }
                    };
                    self.reading.spared.all = true;
                    self.reading.problem(format!(
                        "Unable to read {}, {}; caused by {why}",
                        next.file.kind, next.file.target
                    ));
                }
            }
        }
    }

    fn hosted(&self, file: &LocationRef) -> Result<Option<Hosted>, Unread> {
        match Hosted::parse(self.files.host(), &file.target) {
            None => Ok(None),
            Some(Ok(hosted)) => Ok(Some(hosted)),
            Some(Err(error)) => Err(Unread::Refused(error.0)),
        }
    }

    /// The files that a pattern means; none if the file is one.
    async fn expand(&mut self, next: &Next) -> Result<Option<Vec<Next>>, Unread> {
        if !place::is_pattern(&next.file.target) {
            return Ok(None);
        }
        let Some(hosted) = self.hosted(&next.file)? else {
            return Err(Unread::Refused(
                "patterns are read only in repositories that this server hosts".to_owned(),
            ));
        };
        let snapshot = self.snapshot(&hosted, true).await?;
        let listing = tokio::task::spawn_blocking(move || snapshot.list()).await;
        let paths = listing
            .map_err(|error| Unread::Failed(error.to_string()))?
            .map_err(Unread::Failed)?;
        let host = self.files.host();
        let found = paths
            .into_iter()
            .filter(|path| place::path_matches(&hosted.path, path))
            .take(MAX_FILES + 1);
        let found = found.map(|path| Next {
            file: LocationRef {
                kind: next.file.kind.clone(),
                target: Hosted {
                    path,
                    ..hosted.clone()
                }
                .url(host),
            },
            parent: next.parent.clone(),
            depth: next.depth,
            is_optional: next.is_optional,
        });
        Ok(Some(found.collect()))
    }

    /// A repository. `trusted`: also one that not everybody may read.
    async fn snapshot(&mut self, hosted: &Hosted, trusted: bool) -> Result<Arc<dyn Snapshot>, Unread> {
        self.reading
            .repositories
            .push(format!("{}/{}", hosted.owner, hosted.repository));
        let key = (
            hosted.owner.clone(),
            hosted.repository.clone(),
            hosted.revision.clone(),
            trusted,
        );
        if let Some(snapshot) = self.snapshots.get(&key) {
            return Ok(Arc::clone(snapshot));
        }
        let opened = self.files.open(trusted.then_some(self.workspace), hosted).await;
        let snapshot = opened.map_err(|error| match error {
            FilesError::NotFound(why) => Unread::Absent(why),
            FilesError::Failed(why) => Unread::Failed(why),
        })?;
        if self.reading.commit.is_none() {
            self.reading.commit = Some(snapshot.commit().to_owned());
        }
        self.snapshots.insert(key, Arc::clone(&snapshot));
        Ok(snapshot)
    }

    async fn content(&mut self, file: &LocationRef, trusted: bool) -> Result<Arc<[u8]>, Unread> {
        if !matches!(file.kind.as_str(), "url" | "file") {
            return Err(Unread::Refused(format!(
                "locations of the type {:?} are not read; register a url",
                file.kind
            )));
        }
        let Some(hosted) = self.hosted(file)? else {
            self.reading.is_remote = true;
            let until = self.deadline.min(Instant::now() + ONE_FETCH);
            let fetching = tokio::time::timeout_at(until, fetch(self.outbound, &file.target));
            return fetching
                .await
                .unwrap_or_else(|_| Err(Unread::Failed(format!("{} takes too long", file.target))));
        };
        let snapshot = self.snapshot(&hosted, trusted).await?;
        let path = hosted.path.clone();
        let read = tokio::task::spawn_blocking(move || snapshot.read(&path)).await;
        let read = read
            .map_err(|error| Unread::Failed(error.to_string()))?
            .map_err(Unread::Failed)?;
        let content = read.ok_or_else(|| Unread::Absent(format!("{} is not there", hosted.path)))?;
        match content.len() > document::MAX_FILE {
            true => Err(Unread::Refused(format!(
                "{} has more than {} bytes",
                hosted.path,
                document::MAX_FILE
            ))),
            false => Ok(content),
        }
    }

    /// Takes the entities of a file; the files that they lead to.
    async fn documents(&mut self, next: &Next, content: &[u8]) -> Vec<Next> {
        let documents = match document::read(&next.file.target, content) {
            Ok(documents) => documents,
            Err(why) => {
                self.reading.spared.all = true;
                self.reading.problem(why);
                return Vec::new();
            }
        };
        let mut more = Vec::new();
        for mut entity in documents {
            if self.reading.wanted.len() > MAX_ENTITIES {
                self.reading.spared.all = true;
                self.reading.problem(format!(
                    "more than {MAX_ENTITIES} entities: the rest is not taken"
                ));
                break;
            }
            let reference = match validate::envelope(&entity) {
                Ok(reference) => reference,
                Err(refusal) => {
                    self.reading.problem(format!("{}: {refusal}", next.file));
                    continue;
                }
            };
            let judged = match self.fill(&mut entity, &next.file).await {
                Err(why) => Err(format!("{reference}: {why}")),
                Ok(()) => {
                    annotate(&mut entity, &next.file, self.origin);
                    validate::validate(&entity).map_err(|refusal| refusal.message)
                }
            };
            if let Err(why) = judged {
                self.reading.problem(why);
                self.reading.spared.names.insert(object::entity_name(&reference));
                continue;
            }
            if reference.kind == "Location" {
                more.extend(self.targets(&entity, next, &reference));
            }
            self.reading.wanted.push(Wanted {
                entity,
                file: next.file.clone(),
                parent: Some(next.parent.clone()),
            });
        }
        more
    }

    /// Puts files in the place of placeholders.
    async fn fill(&mut self, entity: &mut Value, file: &LocationRef) -> Result<(), String> {
        for placeholder in placeholders::find(entity)? {
            let beside = self.beside(file, &placeholder.target)?;
            // Who writes a file may show what is beside it, and not what he need not be able to read himself.
            let trusted = match (self.hosted(file), self.hosted(&beside)) {
                (Ok(Some(one)), Ok(Some(other))) => {
                    (one.owner, one.repository) == (other.owner, other.repository)
                }
                _ => false,
            };
            let content = match self.content(&beside, trusted).await {
                Ok(content) => content,
                Err(Unread::Absent(why) | Unread::Refused(why)) => return Err(why),
                Err(Unread::Failed(why)) => {
                    self.reading.is_transient = true;
                    return Err(why);
                }
            };
            placeholders::replace(entity, &placeholder, &content)?;
        }
        Ok(())
    }

    /// Where a target of a file leads.
    fn beside(&self, file: &LocationRef, target: &str) -> Result<LocationRef, String> {
        let is_absolute = target.contains("://");
        let target = match self.hosted(file) {
            Ok(Some(hosted)) if !is_absolute => {
                let beside = hosted.beside(target).map_err(|error| error.0)?;
                // A file of the default branch stays there.
                match beside.revision {
                    Revision::Default => {
                        return Err("name a branch in the address of the location".to_owned());
                    }
                    _ => beside.url(self.files.host()),
                }
            }
            _ => place::beside_url(&file.target, target).map_err(|error| error.0)?,
        };
        Ok(LocationRef {
            kind: "url".to_owned(),
            target,
        })
    }

    /// The files that a Location names.
    fn targets(&mut self, entity: &Value, next: &Next, reference: &EntityRef) -> Vec<Next> {
        let spec = &entity["spec"];
        let kind = spec["type"].as_str().unwrap_or(&next.file.kind);
        let one = spec["target"].as_str();
        let many = spec["targets"].as_array().into_iter().flatten();
        let targets: Vec<&str> = one.into_iter().chain(many.filter_map(Value::as_str)).collect();
        let mut found = Vec::new();
        for target in targets.into_iter().take(MAX_FILES + 1) {
            if !matches!(kind, "url" | "file") {
                self.reading.problem(format!(
                    "{reference}: locations of the type {kind:?} are not read"
                ));
                break;
            }
            match self.beside(&next.file, target) {
                Ok(file) => found.push(Next {
                    file,
                    parent: reference.to_string(),
                    depth: next.depth + 1,
                    is_optional: spec["presence"] == "optional",
                }),
                Err(why) => self.reading.problem(format!("{reference}: {why}")),
            }
        }
        found
    }
}

/// A file elsewhere.
async fn fetch(outbound: &Outbound, url: &str) -> Result<Arc<[u8]>, Unread> {
    let address = place::raw_url(url);
    let asked = outbound.get(&address, &HeaderMap::new(), IDLE).await;
    let mut answer = asked.map_err(|error| match error.is_final() {
        true => Unread::Refused(error.to_string()),
        false => Unread::Failed(error.to_string()),
    })?;
    match answer.status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            return Err(Unread::Absent(format!("{address} is not there")));
        }
        status => return Err(Unread::Failed(format!("{address} answers {status}"))),
    }
    let mut content = Vec::new();
    loop {
        match answer.next().await {
            Ok(None) => return Ok(content.into()),
            Ok(Some(piece)) => content.extend_from_slice(&piece),
            Err(error) => return Err(Unread::Failed(error.to_string())),
        }
        if content.len() > document::MAX_FILE {
            return Err(Unread::Refused(format!(
                "{address} has more than {} bytes",
                document::MAX_FILE
            )));
        }
    }
}

#[cfg(test)]
mod tests;
