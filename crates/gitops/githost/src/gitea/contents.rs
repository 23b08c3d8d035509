//! Files: read at any revision, and changed one at a time or several in one commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_gitops_git::{Change, FileChange, GitError, NewCommit, ObjectId, RefName, Signature};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use super::land::land;
use super::shapes;
use crate::access::Verb;
use crate::host::Opened;
use crate::push::rules::Means;
use crate::route::Slug;

/// The largest file that is shown in JSON.
const MAX_FILE: u64 = 32 << 20;
/// The most files in one commit.
const MAX_FILES: usize = 2000;
/// How many paths one `ls-tree` is asked for: a process for each file would cost more than the commit, and what a command line may
/// hold is bounded.
const ASKED_AT_ONCE: usize = 200;

/// Something in a commit's directory.
#[derive(Clone)]
struct Entry {
    path: String,
    kind: &'static str,
    id: ObjectId,
    size: u64,
    is_executable: bool,
}

/// What is at paths of a commit, of directories nothing but themselves; a path where nothing is, is left out.
async fn at_paths(
    opened: &Opened,
    commit: &ObjectId,
    paths: &[&str],
) -> Result<BTreeMap<String, Entry>, Problem> {
    for path in paths {
        check(path)?;
    }
    let mut found = BTreeMap::new();
    for some in paths.chunks(ASKED_AT_ONCE) {
        let printed = (opened.repository.command("ls-tree"))
            .args(["-z", "--long", "--full-tree", commit.as_str(), "--"])
            .args(some.iter().copied())
            .output()
            .await?;
        found.extend(
            parse(&printed)
                .into_iter()
                .map(|entry| (entry.path.clone(), entry)),
        );
    }
    Ok(found)
}

fn check(path: &str) -> Result<(), Problem> {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    match path.split('/').all(is_plain) && !path.contains('\0') {
        true => Ok(()),
        false => Err(Problem::wrong(format!("{path:?} is not a path of a file"))),
    }
}

/// What is at a path of a commit: itself, and what is in it if it is a directory.
async fn look(opened: &Opened, commit: &ObjectId, path: &str) -> Result<Option<Vec<Entry>>, Problem> {
    let root = path.is_empty();
    if !root {
        check(path)?;
    }
    let mut command =
        opened
            .repository
            .command("ls-tree")
            .args(["-z", "--long", "--full-tree", commit.as_str()]);
    if !root {
        command = command.arg("--").arg(path);
    }
    let printed = command.output().await?;
    let mut found = parse(&printed);
    if root {
        return Ok(Some(found));
    }
    let Some(at) = found.iter().position(|entry| entry.path == path) else {
        return Ok(None);
    };
    if found[at].kind != "dir" {
        return Ok(Some(vec![found.swap_remove(at)]));
    }
    let inside = opened
        .repository
        .command("ls-tree")
        .args(["-z", "--long", "--full-tree", commit.as_str(), "--"])
        .arg(format!("{path}/"))
        .output()
        .await?;
    Ok(Some(parse(&inside)))
}

/// Reads `MODE KIND OBJECT SIZE<tab>PATH<nul>`.
fn parse(printed: &[u8]) -> Vec<Entry> {
    let mut found = Vec::new();
    for line in printed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let text = String::from_utf8_lossy(line);
        let Some((head, path)) = text.split_once('\t') else {
            continue;
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let [mode, kind, id, size] = words[..] else {
            continue;
        };
        let Ok(id) = ObjectId::parse(id) else { continue };
        let kind = match (kind, mode) {
            ("tree", _) => "dir",
            ("commit", _) => "submodule",
            (_, "120000") => "symlink",
            _ => "file",
        };
        found.push(Entry {
            path: path.to_owned(),
            kind,
            id,
            size: size.parse().unwrap_or(0),
            is_executable: mode == "100755",
        });
    }
    found
}

fn shape(
    call: &Call,
    slug: &Slug,
    reference: &str,
    commit: &ObjectId,
    entry: &Entry,
    content: Option<&[u8]>,
) -> Value {
    let url = call.host.url();
    let name = entry.path.rsplit('/').next().unwrap_or(&entry.path);
    let link = format!(
        "{url}/api/v1/repos/{slug}/contents/{}?ref={reference}",
        entry.path
    );
    let raw = format!("{url}/api/v1/repos/{slug}/raw/{}?ref={reference}", entry.path);
    let blob = format!("{url}/api/v1/repos/{slug}/git/blobs/{}", entry.id);
    json!({
        "name": name, "path": entry.path, "sha": entry.id.as_str(), "last_commit_sha": commit.as_str(), "type": entry.kind,
        "size": entry.size, "encoding": content.map(|_| "base64"), "content": content.map(|bytes| STANDARD.encode(bytes)),
        "target": null, "url": link, "html_url": format!("{url}/{slug}/src/branch/{reference}/{}", entry.path), "git_url": blob,
        "download_url": raw, "submodule_git_url": null,
        "_links": {"self": link, "git": blob, "html": format!("{url}/{slug}/src/branch/{reference}/{}", entry.path)},
    })
}

/// The revision that a call is about, and its commit.
async fn revision(call: &Call, opened: &Opened) -> Result<(String, ObjectId), Problem> {
    let asked = call.query.get("ref").map_or("", String::as_str);
    let reference = match asked {
        "" => &opened.wanted.default_branch,
        asked => asked,
    };
    let commit = opened.repository.resolve(reference).await?;
    Ok((reference.to_owned(), commit))
}

/// `GET contents/{path}`
pub(super) async fn get(call: &Call, slug: &Slug, path: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let (reference, commit) = revision(call, &opened).await?;
    let path = path.trim_matches('/');
    let entries = look(&opened, &commit, path).await?;
    let entries = entries.ok_or_else(|| Problem::not_found(&format!("{path} at {reference}")))?;
    if let [only] = entries.as_slice()
        && only.path == path
    {
        let bytes = match only.kind {
            "file" | "symlink" => Some(opened.repository.object(&only.id, "blob", MAX_FILE).await?),
            _ => None,
        };
        return Ok(Answer::ok(shape(
            call,
            slug,
            &reference,
            &commit,
            only,
            bytes.as_deref(),
        )));
    }
    let shown = entries
        .iter()
        .map(|entry| shape(call, slug, &reference, &commit, entry, None));
    Ok(Answer::ok(shown.collect()))
}

/// `GET raw/{path}`
pub(super) async fn raw(call: &Call, slug: &Slug, path: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let (reference, commit) = revision(call, &opened).await?;
    let entries = look(&opened, &commit, path).await?.unwrap_or_default();
    let found = entries
        .iter()
        .find(|entry| entry.path == path && entry.kind == "file");
    let entry = found.ok_or_else(|| Problem::not_found(&format!("{path} at {reference}")))?;
    let bytes = opened.repository.object(&entry.id, "blob", MAX_FILE).await?;
    // Not as what it says it is: a page of somebody's must not run in this site's name.
    Ok(Answer::bytes(bytes, "text/plain; charset=utf-8"))
}

/// What is to be done with a file.
struct Operation {
    kind: &'static str,
    path: String,
    content: Option<Arc<[u8]>>,
    /// The hash that the file is believed to have.
    expected: Option<String>,
    from: Option<String>,
}

impl Operation {
    /// Those that it looks at before it changes something.
    fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.from.as_deref())
    }
}

/// `POST`, `PUT` and `DELETE contents/{path}`
pub(super) async fn change_one(call: &Call, slug: &Slug, path: &str) -> Result<Answer, Problem> {
    let kind = match call.method {
        Method::POST => "create",
        Method::PUT => "update",
        _ => "delete",
    };
    let operation = operation(kind, path, &call.body)?;
    let (opened, commit, entries) = change(call, slug, vec![operation]).await?;
    let branch = target_branch(call, &opened);
    let info = opened.repository.commit_info(&commit).await?;
    let content = match entries.first() {
        None => None,
        Some(entry) => {
            let bytes = opened.repository.object(&entry.id, "blob", MAX_FILE).await?;
            Some(shape(call, slug, &branch, &commit, entry, Some(&bytes)))
        }
    };
    let answer = json!({
        "content": content, "commit": shapes::file_commit(call.host.url(), slug, &info),
        "verification": shapes::verification(&info),
    });
    Ok(match kind {
        "create" => Answer::created(answer),
        _ => Answer::ok(answer),
    })
}

/// `POST contents`: several files in one commit.
pub(super) async fn change_many(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let files = call.body["files"].as_array().cloned().unwrap_or_default();
    if files.is_empty() || files.len() > MAX_FILES {
        return Err(Problem::wrong(format!(
            "files must be a list of 1 to {MAX_FILES} changes"
        )));
    }
    let mut operations = Vec::new();
    for file in &files {
        let kind = match file["operation"].as_str() {
            Some("create") => "create",
            Some("update") => "update",
            Some("upload") => "upload",
            Some("rename") => "rename",
            Some("delete") => "delete",
            other => {
                return Err(Problem::wrong(format!(
                    "operation {other:?} is none of create, update, upload, rename, delete"
                )));
            }
        };
        operations.push(operation(kind, file["path"].as_str().unwrap_or(""), file)?);
    }
    let (opened, commit, entries) = change(call, slug, operations).await?;
    let branch = target_branch(call, &opened);
    let info = opened.repository.commit_info(&commit).await?;
    let shown: Vec<Value> = entries
        .iter()
        .map(|entry| shape(call, slug, &branch, &commit, entry, None))
        .collect();
    Ok(Answer::created(json!({
        "files": shown, "commit": shapes::file_commit(call.host.url(), slug, &info),
        "verification": shapes::verification(&info),
    })))
}

fn operation(kind: &'static str, path: &str, fields: &Value) -> Result<Operation, Problem> {
    let content = match (fields["content"].as_str(), kind) {
        (Some(text), _) => {
            let text: String = text.split_ascii_whitespace().collect();
            let bytes = STANDARD
                .decode(text)
                .map_err(|_| Problem::wrong(format!("the content of {path} is not Base64")))?;
            Some(bytes.into())
        }
        (None, "create" | "update" | "upload") => Some(Arc::from([])),
        (None, _) => None,
    };
    let text = |field: &str| {
        fields[field]
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    Ok(Operation {
        kind,
        path: path.to_owned(),
        content,
        expected: text("sha"),
        from: text("from_path"),
    })
}

fn target_branch(call: &Call, opened: &Opened) -> String {
    // Clients send every field, empty where nothing is meant.
    let named = |field: &str| call.text(field).filter(|name| !name.is_empty());
    let branch = named("new_branch").or_else(|| named("branch"));
    branch.unwrap_or(&opened.wanted.default_branch).to_owned()
}

/// Makes the commit and moves the branch; what is at the paths afterwards.
async fn change(
    call: &Call,
    slug: &Slug,
    operations: Vec<Operation>,
) -> Result<(Opened, ObjectId, Vec<Entry>), Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let base = call
        .text("branch")
        .filter(|name| !name.is_empty())
        .unwrap_or(&opened.wanted.default_branch);
    let base = RefName::branch(base)?;
    let target = RefName::branch(&target_branch(call, &opened))?;
    let start = match opened.repository.resolve(base.as_str()).await {
        Ok(commit) => Some(commit),
        // The first commit of an empty repository.
        Err(GitError::UnknownRevision { .. })
            if opened.repository.references("refs/heads/").await?.is_empty() =>
        {
            None
        }
        Err(error) => return Err(error.into()),
    };
    let old = match target == base {
        true => start.clone(),
        false => {
            if opened.repository.reference(&target).await?.is_some() {
                return Err(Problem::wrong(format!(
                    "the branch {} exists already",
                    target.short()
                )));
            }
            None
        }
    };
    let named: Vec<&str> = operations.iter().flat_map(Operation::paths).collect();
    let there = match &start {
        Some(start) => at_paths(&opened, start, &named).await?,
        None => {
            named.into_iter().try_for_each(check)?;
            BTreeMap::new()
        }
    };
    let mut changes = Vec::new();
    for operation in &operations {
        changes.extend(plan(&opened, &there, operation).await?);
    }
    let default_message = match operations.as_slice() {
        [one] => format!("{} {}\n", one.kind, one.path),
        many => format!("change {} files\n", many.len()),
    };
    let message = call
        .text("message")
        .filter(|text| !text.is_empty())
        .map_or(default_message, str::to_owned);
    let commit = NewCommit {
        parents: start.into_iter().collect(),
        changes,
        author: signature(&call.body, "author", &opened),
        committer: signature(&call.body, "committer", &opened),
        message,
    };
    let id = opened.repository.create_commit(commit).await?;
    land(call, slug, &opened, target, old, Some(id.clone()), Means::Push).await?;
    let left = operations.iter().filter(|operation| operation.kind != "delete");
    let left: Vec<&str> = left.map(|operation| operation.path.as_str()).collect();
    let there = at_paths(&opened, &id, &left).await?;
    let entries = left.iter().filter_map(|path| there.get(*path).cloned()).collect();
    Ok((opened, id, entries))
}

/// What an operation changes, if the file is what the caller believes it to be; `there` is what was at all paths before.
async fn plan(
    opened: &Opened,
    there: &BTreeMap<String, Entry>,
    operation: &Operation,
) -> Result<Vec<FileChange>, Problem> {
    let at = |path: &str| match there.get(path) {
        Some(entry) if entry.kind == "dir" => Err(Problem::wrong(format!("{path} is a directory"))),
        found => Ok(found),
    };
    let path = operation.path.as_str();
    let there = at(path)?;
    let is_same = |entry: &Entry| {
        operation
            .expected
            .as_deref()
            .is_none_or(|expected| expected == entry.id.as_str())
    };
    let moved = |path: &str| {
        Problem::new(
            StatusCode::CONFLICT,
            format!("sha does not match: {path} is not what you believe it to be"),
        )
    };
    let size = operation
        .content
        .as_ref()
        .map_or(0, |content| content.len() as u64);
    if size > opened.wanted.limits.max_file {
        let why = format!("{path} has {size} bytes, more than spec.limits.maxFileSize of the Repository");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    let write = |is_executable: bool| FileChange {
        path: path.to_owned(),
        change: Change::File {
            content: operation.content.clone().unwrap_or_default(),
            is_executable,
        },
    };
    match (operation.kind, there) {
        ("create", Some(_)) => Err(Problem::wrong(format!(
            "repository file already exists [path: {path}]"
        ))),
        ("create" | "upload", None) => Ok(vec![write(false)]),
        ("update" | "upload", Some(entry)) => match is_same(entry) {
            true => Ok(vec![write(entry.is_executable)]),
            false => Err(moved(path)),
        },
        ("delete", Some(entry)) => match is_same(entry) {
            true => Ok(vec![FileChange::gone(path)]),
            false => Err(moved(path)),
        },
        ("update" | "rename", None) if operation.from.is_some() => {
            let from = operation.from.as_deref().unwrap_or("");
            let entry = at(from)?.ok_or_else(|| Problem::not_found(from))?;
            if !is_same(entry) {
                return Err(moved(from));
            }
            let content: Arc<[u8]> = match &operation.content {
                Some(content) if operation.kind == "update" || !content.is_empty() => content.clone(),
                _ => opened
                    .repository
                    .object(&entry.id, "blob", MAX_FILE)
                    .await?
                    .into(),
            };
            let is_executable = entry.is_executable;
            let change = Change::File {
                content,
                is_executable,
            };
            let path = path.to_owned();
            Ok(vec![FileChange::gone(from), FileChange { path, change }])
        }
        ("rename", Some(_)) => Err(Problem::wrong(format!(
            "repository file already exists [path: {path}]"
        ))),
        _ => Err(Problem::not_found(path)),
    }
}

/// Who is named in the body, else who asks, now.
pub(super) fn signature(body: &Value, role: &str, opened: &Opened) -> Signature {
    let text = |field: &str| {
        body[role][field]
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let name = text("name").unwrap_or_else(|| opened.caller.short_name().to_owned());
    let email =
        text("email").unwrap_or_else(|| format!("{}@noreply.fairway.localhost", opened.caller.short_name()));
    Signature {
        name,
        email,
        seconds: jiff::Timestamp::now().as_second(),
        offset_minutes: 0,
    }
}
