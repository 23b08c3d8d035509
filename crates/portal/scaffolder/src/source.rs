//! Where files of templates come from: beside the template, from a repository of the Git host, or one file from elsewhere.

use std::time::Duration;

use fairway_outbound::Message;
use fairway_portal_template::files::{File, Files, MAX_FILE};
use http::{HeaderMap, Method};

use crate::World;
use crate::builtin::SCHEME;
use crate::ports::{Hosted, Person};
use fairway_controller::WorkspaceId;

/// How long a file from elsewhere may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A directory or file of a built-in template: name and path.
    Builtin(String, String),
    /// A directory or file of a hosted repository: revision (the default branch if empty) and path.
    Hosted(Hosted, String, String),
    /// Somewhere else.
    Elsewhere(String),
}

/// Reads an address, which may be relative to where the template is.
pub(crate) fn place(url: &str, base: Option<&str>, forge: &str) -> Result<Place, String> {
    let is_relative = !url.contains("://") && !url.starts_with(SCHEME);
    let whole = match (is_relative, base) {
        (false, _) => url.to_owned(),
        (true, Some(base)) => {
            let base = base.strip_prefix("url:").unwrap_or(base);
            joined(base, url)?
        }
        (true, None) => {
            return Err(format!(
                "{url:?} is relative, but where the template is is not known (backstage.io/source-location)"
            ));
        }
    };
    if let Some(rest) = whole.strip_prefix(SCHEME) {
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        return Ok(Place::Builtin(name.to_owned(), path.trim_matches('/').to_owned()));
    }
    let Some(rest) = whole.strip_prefix(forge).and_then(|rest| rest.strip_prefix('/')) else {
        return Ok(Place::Elsewhere(whole));
    };
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let hosted = |owner: &str, name: &str| Hosted {
        owner: owner.to_owned(),
        name: name.strip_suffix(".git").unwrap_or(name).to_owned(),
    };
    match &parts[..] {
        [owner, name] => Ok(Place::Hosted(hosted(owner, name), String::new(), String::new())),
        // Gitea's addresses of directories and files; a branch with a slash in it is written %2F.
        [
            owner,
            name,
            "src" | "raw",
            "branch" | "tag" | "commit",
            revision,
            path @ ..,
        ] => Ok(Place::Hosted(
            hosted(owner, name),
            revision.replace("%2F", "/"),
            path.join("/"),
        )),
        _ => Err(format!(
            "{whole} is not the address of a directory or file of a repository"
        )),
    }
}

/// A relative address on top of a directory. It must not leave what the template's place is in.
fn joined(base: &str, relative: &str) -> Result<String, String> {
    let (head, tail) = match base.find("://") {
        Some(at) => {
            let from = base[at + 3..]
                .find('/')
                .map_or(base.len(), |slash| at + 3 + slash);
            base.split_at(from)
        }
        None => match base.split_once('/') {
            Some((head, tail)) => (head, tail),
            None => (base, ""),
        },
    };
    let mut parts: Vec<&str> = tail.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => {
                return Err(format!("{relative:?} leads out of where the template is"));
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    Ok(format!("{head}/{}", parts.join("/")))
}

/// Files that were fetched, and what they were at that moment: a commit or a digest.
pub(crate) struct Fetched {
    pub(crate) files: Files,
    pub(crate) pin: Option<String>,
}

/// A directory of files, or the one file that a path means.
pub(crate) fn within(all: &Files, path: &str) -> Result<Files, String> {
    let path = fairway_portal_template::files::clean(path).map_err(|error| error.to_string())?;
    let mut files = all.subtree(&path).map_err(|error| error.to_string())?;
    if let (Some(file), true) = (all.get(&path), files.is_empty()) {
        let name = path.rsplit('/').next().unwrap_or(&path);
        files
            .write(name, file.clone())
            .map_err(|error| error.to_string())?;
    }
    match files.is_empty() {
        true => Err(format!("there is no {path:?}")),
        false => Ok(files),
    }
}

/// Fetches what is at a place. With a pin, what was there then.
pub(crate) async fn fetch(
    world: &World,
    workspace: &WorkspaceId,
    person: &Person,
    place: &Place,
    pin: Option<&str>,
) -> Result<Fetched, String> {
    match place {
        Place::Builtin(name, path) => {
            let builtin = world
                .options
                .builtins
                .iter()
                .find(|builtin| builtin.name == *name);
            let builtin = builtin.ok_or_else(|| format!("there is no built-in template called {name:?}"))?;
            let files = within(&builtin.files, path);
            let files = files.map_err(|why| format!("the built-in template {name:?}: {why}"))?;
            Ok(Fetched { files, pin: None })
        }
        Place::Hosted(repository, revision, path) => {
            let revision = pin.unwrap_or(revision);
            let read = world
                .options
                .forge
                .read(workspace, person, repository, revision, path)
                .await;
            let (commit, files) = read.map_err(|error| format!("{repository} cannot be read: {error}"))?;
            match files.is_empty() {
                true => Err(format!("{repository} has no {path:?} at {commit}")),
                false => Ok(Fetched {
                    files,
                    pin: Some(commit),
                }),
            }
        }
        Place::Elsewhere(url) => elsewhere(world, url, pin).await,
    }
}

/// One file from elsewhere. Directories elsewhere are not walked through: mirror their repository.
async fn elsewhere(world: &World, url: &str, pin: Option<&str>) -> Result<Fetched, String> {
    let message = Message {
        method: Method::GET,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
        timeout: PATIENCE,
        max_reply: MAX_FILE + 1,
    };
    let reply = world.options.outbound.send(message).await;
    let reply = reply.map_err(|error| format!("{url} cannot be fetched: {error}"))?;
    if reply.status != 200 {
        return Err(format!("{url} cannot be fetched: it answers {}", reply.status));
    }
    let digest = {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(&reply.body);
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    if pin.is_some_and(|pin| pin != digest) {
        return Err(format!("{url} has changed since the run began"));
    }
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let name = path
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or("file");
    let mut files = Files::default();
    files
        .write(name, File::new(reply.body.to_vec()))
        .map_err(|error| error.to_string())?;
    Ok(Fetched {
        files,
        pin: Some(digest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood() {
        let forge = "https://git.fairway.localhost:7443";
        let base = Some("url:https://git.fairway.localhost:7443/root/paths/src/branch/main/vm/");
        let hosted = |revision: &str, path: &str| {
            let repository = Hosted {
                owner: "root".to_owned(),
                name: "paths".to_owned(),
            };
            Some(Place::Hosted(repository, revision.to_owned(), path.to_owned()))
        };
        for (url, base, expected) in [
            ("./skeleton", base, hosted("main", "vm/skeleton")),
            ("../shared", base, hosted("main", "shared")),
            (
                "https://git.fairway.localhost:7443/root/paths.git",
                None,
                hosted("", ""),
            ),
            (
                "https://git.fairway.localhost:7443/root/paths/src/commit/abc/x/y",
                None,
                hosted("abc", "x/y"),
            ),
            (
                "./skeleton",
                Some("builtin:virtual-machine/"),
                Some(Place::Builtin(
                    "virtual-machine".to_owned(),
                    "skeleton".to_owned(),
                )),
            ),
            (
                "https://example.com/x",
                base,
                Some(Place::Elsewhere("https://example.com/x".to_owned())),
            ),
            ("./skeleton", None, None),
            ("../../x", Some("builtin:a/"), None),
            ("https://git.fairway.localhost:7443/root/paths/issues", None, None),
        ] {
            assert_eq!(place(url, base, forge).ok(), expected, "{url}");
        }
    }
}
