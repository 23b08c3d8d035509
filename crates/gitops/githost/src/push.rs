//! A push: commands are read, objects come into a place of their own and are judged there, references move, and the pusher
//! hears what follows from it.
//!
//! ```text
//! read commands → read options → index-pack into quarantine → complete? → rules, limits, checks
//!     → accept objects → move references (compare-and-swap) → report → watchers' lines → end
//! ```
//!
//! Nothing of a push is visible before the references move, and everything is on disk when they do. A pusher who leaves
//! early loses only the answer.

pub mod commands;
pub mod rules;
pub mod telling;

mod limits;
mod report;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fairway_gitops_git::{GitError, ObjectId, Repository};
use futures::StreamExt;
use http::{Response, StatusCode};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tracing::{debug, info};

use crate::access::Caller;
use crate::catalog::Wanted;
use crate::fetch::HIDDEN;
use crate::host::Host;
use crate::pkt;
use crate::seams::{Push, Update};
use crate::transport::{Body, Input, InputError, Output, channel, full, response};
use commands::{CAPABILITIES, Command, Line, MAX_COMMANDS, MAX_OPTIONS, Wishes};
use report::Verdicts;
use rules::{Means, Observed};

const RESULT: &str = "application/x-git-receive-pack-result";
/// How long objects may come, and be looked at.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// What unpacking may take of memory: a delta says how large its result is.
const MAX_MEMORY: u64 = 2 << 30;
/// The commands of a push, in bytes.
const MAX_COMMAND_BYTES: usize = 8 << 20;
/// The first bytes of a pack: its mark, its version, and how many objects it has.
const PACK_HEAD: usize = 12;
/// The most objects in one push.
const MAX_OBJECTS: u32 = 1_000_000;
/// How much longer than he asked for a pusher may be told what follows, whoever speaks.
const MORE: Duration = Duration::from_secs(5);

/// What a repository has, for a push.
pub async fn refs(repository: &Repository) -> Result<Response<Body>, GitError> {
    let mut out = BytesMut::new();
    pkt::write(&mut out, b"# service=git-receive-pack\n");
    out.extend_from_slice(pkt::FLUSH);
    let mut capabilities = format!("\0{CAPABILITIES}");
    for reference in repository.references("").await? {
        if reference.name.as_str().starts_with(HIDDEN) {
            continue;
        }
        let line = format!(
            "{} {}{}\n",
            reference.id,
            reference.name,
            std::mem::take(&mut capabilities)
        );
        pkt::write(&mut out, line.as_bytes());
    }
    if !capabilities.is_empty() {
        let line = format!("{} capabilities^{{}}{capabilities}\n", ObjectId::zero());
        pkt::write(&mut out, line.as_bytes());
    }
    out.extend_from_slice(pkt::FLUSH);
    let media_type = "application/x-git-receive-pack-advertisement";
    Ok(response(StatusCode::OK, media_type, full(out.freeze())))
}

/// Who pushes where.
pub(crate) struct Pushing {
    pub host: Arc<Host>,
    pub wanted: Arc<Wanted>,
    pub owner: String,
    pub repository: Repository,
    pub pusher: Caller,
    /// Its place among the conversations under way, given up when the references have moved: telling what follows costs
    /// nothing, and may take long.
    pub turn: Option<OwnedSemaphorePermit>,
}

/// What the first part of the request says.
struct Asked {
    commands: Vec<Command>,
    wishes: Wishes,
    options: Vec<String>,
}

/// Why a push ends before there is anything to report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PushError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Command(#[from] commands::BadCommand),
    #[error("more than {MAX_COMMANDS} references or {MAX_OPTIONS} options in one push; push fewer at once")]
    TooMany,
    #[error("{}", .0.full())]
    Git(#[from] GitError),
}

impl PushError {
    /// What went wrong on our side, and not on the client's.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Git(_))
    }
}

impl Pushing {
    /// Reads a push and answers it. The response begins when all of the request has been read.
    pub(crate) async fn rpc(self, body: Body, is_gzip: bool) -> Result<Response<Body>, PushError> {
        // The pack is bounded by index-pack; this bounds what else there may be.
        let limit = self
            .wanted
            .limits
            .max_push
            .saturating_add(MAX_COMMAND_BYTES as u64);
        let mut input = Input::new(body, is_gzip, limit);
        let asked = read_commands(&mut input).await?;
        if asked.commands.is_empty() {
            // What clients send first to see whether they are let in, before they send a large pack.
            return Ok(response(StatusCode::OK, RESULT, full(Bytes::new())));
        }
        let incoming = self.repository.incoming_directory()?;
        let is_bringing = asked
            .commands
            .iter()
            .any(|c| c.update.as_ref().is_ok_and(|u| u.new.is_some()));
        let received = match is_bringing {
            true => tokio::time::timeout(TIMEOUT, self.receive(&mut input, &incoming))
                .await
                .unwrap_or_else(|_| Ok(Err("the push took longer than an hour".to_owned())))?,
            false => Ok(()),
        };
        let (output, body) = channel();
        tokio::spawn(async move {
            self.finish(asked, received, incoming, &output).await;
        });
        Ok(response(StatusCode::OK, RESULT, body))
    }

    /// Has git take the objects apart. The inner error is what the pusher must hear.
    async fn receive(&self, input: &mut Input, incoming: &TempDir) -> Result<Result<(), String>, PushError> {
        let head = match input.exact(PACK_HEAD).await {
            Ok(head) => head,
            Err(InputError::Short) => return Ok(Err("the pack is missing".to_owned())),
            Err(error) => return Err(error.into()),
        };
        let count = match pack_objects(&head) {
            Some(count) if count <= MAX_OBJECTS => count,
            found => {
                while input.piece().await?.is_some() {}
                return Ok(Err(match found {
                    None => "what was sent is not a pack".to_owned(),
                    Some(count) => {
                        format!("{count} objects in one push, more than {MAX_OBJECTS}; push in several steps")
                    }
                }));
            }
        };
        if count == 0 {
            // The objects are here already; a reference is all that is new.
            while input.piece().await?.is_some() {}
            return Ok(Ok(()));
        }
        let repository = self.repository.with_incoming(incoming.path());
        let mut running = repository
            .command("index-pack")
            .set("core.bigFileThreshold=8m")
            .set("core.packedGitLimit=256m")
            .set("core.packedGitWindowSize=16m")
            .set("core.deltaBaseCacheLimit=32m")
            .max_memory(MAX_MEMORY)
            .args(["--stdin", "--fix-thin", "--threads=1"])
            // What old programs got wrong, and nobody can mend in history that is shared.
            .arg("--strict=zeroPaddedFilemode=warn,badTimezone=warn,missingSpaceBeforeDate=warn")
            .arg(format!("--max-input-size={}", self.wanted.limits.max_push))
            .spawn()?;
        let (stdin, stdout, stderr) = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        let feeding = async {
            let Some(mut stdin) = stdin else { return Ok(()) };
            let mut is_listening = stdin.write_all(&head).await.is_ok();
            // Also after it has heard enough: the client reads the answer only when all was taken from it.
            while let Some(piece) = input.piece().await? {
                is_listening = is_listening && stdin.write_all(&piece).await.is_ok();
            }
            Ok::<(), PushError>(())
        };
        let hearing = async {
            let mut sink = Vec::new();
            if let Some(stdout) = stdout {
                let _ = stdout.take(4096).read_to_end(&mut sink).await;
            }
            Ok(())
        };
        let complaining = async {
            let mut said = Vec::new();
            if let Some(stderr) = stderr {
                let _ = stderr.take(16 << 10).read_to_end(&mut said).await;
            }
            Ok(said)
        };
        let ((), (), said) = tokio::try_join!(feeding, hearing, complaining)?;
        Ok(match running.wait().await? {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&said);
                let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("");
                Err(last.trim_start_matches("fatal: ").to_owned())
            }
        })
    }

    async fn finish(
        mut self,
        asked: Asked,
        received: Result<(), String>,
        incoming: TempDir,
        output: &Output,
    ) {
        let Asked {
            commands,
            wishes,
            options,
        } = asked;
        let say = |text: String| async move {
            if wishes.side_band {
                let _ = output.send(pkt::message(&text)).await;
            }
        };
        let mut verdicts = Verdicts::new(&commands);
        let mut moved = None;
        match received {
            Err(why) => {
                say(format!("error: the objects were refused: {why}")).await;
                verdicts.unpack(&why);
            }
            Ok(()) => {
                let updates: Vec<Update> = commands.iter().filter_map(|c| c.update.clone().ok()).collect();
                let quarantined = self.repository.with_incoming(incoming.path());
                let push = self.push(quarantined.clone(), updates, options);
                match self.judge(&push, &incoming, &mut verdicts).await {
                    Ok(lines) => {
                        for line in lines {
                            say(line).await;
                        }
                        moved = self.carry_out(push, incoming, wishes, &mut verdicts).await;
                    }
                    Err(why) => {
                        say(format!("error: {why}")).await;
                        verdicts.refuse_all("pre-receive check declined");
                    }
                }
                quarantined.close();
            }
        }
        drop(self.turn.take());
        self.answer(moved, wishes, &verdicts, output).await;
    }

    fn push(&self, repository: Repository, updates: Vec<Update>, options: Vec<String>) -> Push {
        Push {
            wanted: Arc::clone(&self.wanted),
            owner: self.owner.clone(),
            repository,
            updates,
            pusher: self.pusher.clone(),
            options,
        }
    }

    /// Judges every reference, and the push as a whole. The error refuses all of it.
    async fn judge(
        &self,
        push: &Push,
        incoming: &TempDir,
        verdicts: &mut Verdicts,
    ) -> Result<Vec<String>, String> {
        let tips: Vec<ObjectId> = push
            .updates
            .iter()
            .filter_map(|update| update.new.clone())
            .collect();
        if !tips.is_empty() {
            let complete = push.repository.is_complete(&tips).await;
            complete.map_err(|error| format!("objects are missing: {}", error.full()))?;
        }
        for update in &push.updates {
            let is_forced = match (&update.old, &update.new) {
                (Some(old), Some(new)) if update.name.as_branch().is_some() => {
                    !push.repository.is_ancestor(old, new).await.unwrap_or(false)
                }
                _ => false,
            };
            let observed = Observed {
                name: &update.name,
                is_deletion: update.new.is_none(),
                is_forced,
                user: push.pusher.name(),
                groups: push.pusher.groups(),
                means: Means::Push,
            };
            let refusal = rules::refusal(&push.wanted, &observed);
            if let Some(why) = refusal {
                verdicts.refuse(update.name.as_str(), &why);
            } else if update.name.as_branch().is_some()
                && let Some(new) = &update.new
                && push.repository.commit_info(new).await.is_err()
            {
                verdicts.refuse(update.name.as_str(), "a branch must point to a commit");
            }
        }
        limits::check(push, incoming.path()).await?;
        let mut lines = Vec::new();
        for check in self.host.checks() {
            lines.extend(check.check(push).await?);
        }
        Ok(lines)
    }

    /// Accepts the objects and moves the references; what has moved.
    async fn carry_out(
        &self,
        push: Push,
        incoming: TempDir,
        wishes: Wishes,
        verdicts: &mut Verdicts,
    ) -> Option<Push> {
        if wishes.is_atomic && verdicts.has_refusals() {
            verdicts.refuse_all("atomic push failed");
            return None;
        }
        if let Err(error) = self.repository.accept(incoming).await {
            verdicts.refuse_all(&error.full());
            return None;
        }
        let open: Vec<Update> = push
            .updates
            .iter()
            .filter(|u| verdicts.is_open(u.name.as_str()))
            .cloned()
            .collect();
        let mut moved = Vec::new();
        let together = match open.len() {
            0 => Ok(()),
            _ => {
                self.repository
                    .update_references(
                        &open
                            .iter()
                            .map(|u| (&u.name, u.new.as_ref(), u.old.as_ref()))
                            .collect::<Vec<_>>(),
                    )
                    .await
            }
        };
        match together {
            Ok(()) => moved = open,
            Err(error) if wishes.is_atomic => verdicts.refuse_all(&reason(&error)),
            Err(_) => {
                // One of them stands in the way of all; each for itself, then.
                for update in open {
                    let outcome = self
                        .repository
                        .update_reference(&update.name, update.new.as_ref(), update.old.as_ref())
                        .await;
                    match outcome {
                        Ok(()) => moved.push(update),
                        Err(error) => verdicts.refuse(update.name.as_str(), &reason(&error)),
                    }
                }
            }
        }
        if moved.is_empty() {
            return None;
        }
        info!(
            owner = self.owner,
            name = self.wanted.name,
            pusher = self.pusher.name(),
            references = moved.len(),
            "a push was accepted"
        );
        Some(self.push(self.repository.clone(), moved, push.options))
    }

    /// Reports what became of it, then lets watchers speak.
    async fn answer(&self, moved: Option<Push>, wishes: Wishes, verdicts: &Verdicts, output: &Output) {
        // Before the report: who reads it may rely on everybody having been told.
        if let Some(push) = &moved {
            crate::hooks::payload::pushed(&self.host, push).await;
        }
        let speakers: Vec<_> = moved.iter().flat_map(|push| self.host.tell(push)).collect();
        let told = moved.as_ref().and_then(Push::telling);
        if wishes.report_status {
            let report = verdicts.report();
            let framed = match wishes.side_band {
                true => pkt::band(pkt::Band::Data, &report),
                false => report,
            };
            if output.send(framed).await.is_err() {
                return;
            }
        }
        if wishes.side_band {
            if let Some(told) = told {
                let mut lines = futures::stream::select_all(speakers);
                let speaking = async {
                    while let Some(line) = lines.next().await {
                        if output.send(pkt::message(&line)).await.is_err() {
                            break;
                        }
                    }
                };
                tokio::select! {
                    _ = tokio::time::timeout(told.limit + MORE, speaking) => {}
                    () = output.left() => debug!("the pusher left before the end of the answer"),
                }
            }
            let _ = output.send(Bytes::from_static(pkt::FLUSH)).await;
        }
        if let Some(push) = moved {
            self.host.after_push(push);
        }
    }
}

/// What a client shows beside the reference.
fn reason(error: &GitError) -> String {
    match error {
        GitError::Moved { .. } => "fetch first: the reference has moved".to_owned(),
        GitError::Failed { said, .. } => said.lines().next().unwrap_or("failed to update ref").to_owned(),
        other => other.full(),
    }
}

/// How many objects a pack says that it has.
fn pack_objects(head: &[u8]) -> Option<u32> {
    let rest = head.strip_prefix(b"PACK")?;
    let (version, count) = rest.split_first_chunk::<4>()?;
    let is_known = matches!(u32::from_be_bytes(*version), 2 | 3);
    let count = count.first_chunk::<4>()?;
    is_known.then(|| u32::from_be_bytes(*count))
}

async fn read_commands(input: &mut Input) -> Result<Asked, PushError> {
    let (mut wishes, mut commands, mut options) = (Wishes::default(), Vec::new(), Vec::new());
    if input.is_at_end().await? {
        return Ok(Asked {
            commands,
            wishes,
            options,
        });
    }
    let mut bytes = 0;
    while let Some(line) = input.frame().await? {
        bytes += line.len();
        if commands.len() >= MAX_COMMANDS || bytes > MAX_COMMAND_BYTES {
            return Err(PushError::TooMany);
        }
        match commands::parse(&line, &mut wishes)? {
            Line::Command(command) => commands.push(command),
            Line::Shallow => {}
        }
    }
    if wishes.has_options && !commands.is_empty() {
        while let Some(line) = input.frame().await? {
            if options.len() >= MAX_OPTIONS {
                return Err(PushError::TooMany);
            }
            options.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    }
    Ok(Asked {
        commands,
        wishes,
        options,
    })
}
