//! Files from the web, with progress, going on where an earlier attempt was interrupted.
//!
//! The file is kept aside in the cache together with what the server said about its version. If the server has still the
//! same version, only the rest is asked for; otherwise it is fetched anew. Only a file that is whole is handed on.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairway_outbound::{Outbound, SendError};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::cache::hex;
use crate::{Cache, ImageError, failed, unpack};

/// How long nothing may arrive.
const IDLE: Duration = Duration::from_secs(60);
/// So often the free room is looked at.
const LOOK_EVERY: u64 = 64 << 20;

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are there.
    pub done: u64,
    /// Bytes that there will be, if the server says so.
    pub total: Option<u64>,
}

/// A file that was fetched. It is removed by [`Fetched::discard`], so that an import that fails for lack of room can be repeated
/// without fetching it again.
#[derive(Debug)]
pub struct Fetched {
    version: Option<String>,
    path: PathBuf,
    notes: PathBuf,
    // Nobody else works on the same file meanwhile.
    _lock: std::fs::File,
}

impl Fetched {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the server calls this version of the file, for [`fetch_unless`].
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Removes the file.
    pub fn discard(self) {
        let _ = std::fs::remove_file(&self.notes);
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What is known of a file that is being fetched.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    url: String,
    /// What the server calls this version of the file.
    version: Option<String>,
}

/// Fetches a file of at most `limit` bytes.
pub async fn fetch(
    cache: &Cache,
    outbound: &Outbound,
    url: &str,
    headers: &[(String, String)],
    limit: u64,
    progress: impl FnMut(Progress),
) -> Result<Fetched, ImageError> {
    let fetched = fetch_unless(cache, outbound, url, headers, limit, None, progress).await?;
    fetched.ok_or_else(|| ImageError::Download {
        url: url.to_owned(),
        why: "the server says that it has not changed, although nobody asked".to_owned(),
        is_final: false,
    })
}

/// Fetches a file of at most `limit` bytes, unless the server still has the version that is known: then there is nothing to
/// fetch. The server is asked in either case, so that it decides whether whoever asks may have the file.
pub async fn fetch_unless(
    cache: &Cache,
    outbound: &Outbound,
    url: &str,
    headers: &[(String, String)],
    limit: u64,
    known: Option<&str>,
    mut progress: impl FnMut(Progress),
) -> Result<Option<Fetched>, ImageError> {
    let key = &hex(digest(&SHA256, url.as_bytes()).as_ref())[..32];
    let mut fetched = Fetched {
        version: None,
        path: cache.partial().join(format!("{key}.part")),
        notes: cache.partial().join(format!("{key}.json")),
        _lock: lock(&cache.partial().join(format!("{key}.lock")), url)?,
    };
    let error = |why: String, is_final| ImageError::Download {
        url: url.to_owned(),
        why,
        is_final,
    };
    let failed_send = |failure: SendError| error(failure.to_string(), failure.is_final());
    let headers = header_map(headers).map_err(|why| error(why, true))?;

    let (have, version) = resumable(&fetched, url);
    // Whether it is the known version is told by an answer with the whole of it.
    let have = if known.is_some() { 0 } else { have };
    let mut answer = ask(outbound, url, &headers, have, version.as_deref())
        .await
        .map_err(failed_send)?;
    let is_known =
        || identity(version_of(&answer.headers).as_deref(), length_of(&answer.headers)).as_deref() == known;
    if known.is_some() && answer.status == StatusCode::OK && is_known() {
        return Ok(None);
    }
    // A rest that begins elsewhere than here, or cannot be had, is asked for as a whole.
    let is_other_part = answer.status == StatusCode::PARTIAL_CONTENT && begin(&answer.headers) != Some(have);
    if have > 0 && (is_other_part || answer.status == StatusCode::RANGE_NOT_SATISFIABLE) {
        answer = ask(outbound, url, &headers, 0, None).await.map_err(failed_send)?;
    }
    let start = match answer.status {
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT if have > 0 => have,
        status => {
            // Whatever it answers, it may answer otherwise tomorrow.
            return Err(error(format!("the server answers {status}"), false));
        }
    };
    let total = length_of(&answer.headers).map(|length| start.saturating_add(length));
    let too_large = || ImageError::TooLarge {
        what: url.to_owned(),
        limit,
    };
    if total.is_some_and(|total| total > limit) {
        return Err(too_large());
    }
    let notes = Notes {
        url: url.to_owned(),
        version: version_of(&answer.headers),
    };
    let mut file = open(&fetched, start, &notes)?;
    fetched.version = identity(notes.version.as_deref(), total);
    let mut done = start;
    let mut next_look = start;
    progress(Progress { done, total });
    while let Some(piece) = answer.next().await.map_err(failed_send)? {
        done += piece.len() as u64;
        if done > limit {
            return Err(too_large());
        }
        // Disks are as fast as networks: a piece is written in less time than handing it to another thread takes.
        file.write_all(&piece).map_err(failed("writing", &fetched.path))?;
        progress(Progress { done, total });
        if done >= next_look {
            unpack::room(&fetched.path, url)?;
            next_look = done + LOOK_EVERY;
        }
    }
    if total.is_some_and(|total| total != done) {
        return Err(error("the connection broke off".to_owned(), false));
    }
    Ok(Some(fetched))
}

async fn ask(
    outbound: &Outbound,
    url: &str,
    headers: &HeaderMap,
    have: u64,
    version: Option<&str>,
) -> Result<fairway_outbound::Download, SendError> {
    let mut headers = headers.clone();
    if let (Some(version), true) = (version, have > 0)
        && let (Ok(version), Ok(range)) = (
            HeaderValue::from_str(version),
            HeaderValue::from_str(&format!("bytes={have}-")),
        )
    {
        headers.insert(header::RANGE, range);
        headers.insert(header::IF_RANGE, version);
    }
    outbound.get(url, &headers, IDLE).await
}

/// How much is there of a version that the server can be asked about.
fn resumable(fetched: &Fetched, url: &str) -> (u64, Option<String>) {
    let notes: Notes = std::fs::read(&fetched.notes)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let have = std::fs::metadata(&fetched.path).map_or(0, |found| found.len());
    match notes.version {
        Some(version) if notes.url == url => (have, Some(version)),
        _ => (0, None),
    }
}

/// The file, cut to what it may have, and what is known of it beside.
fn open(fetched: &Fetched, start: u64, notes: &Notes) -> Result<std::fs::File, ImageError> {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&fetched.path)
        .map_err(failed("writing", &fetched.path))?;
    // The notes are written for what is there: in between there is nothing.
    if start == 0 {
        let _ = std::fs::remove_file(&fetched.notes);
    }
    file.set_len(start)
        .and_then(|()| file.seek(SeekFrom::Start(start)))
        .map_err(failed("writing", &fetched.path))?;
    let text = serde_json::to_vec(notes).unwrap_or_default();
    std::fs::write(&fetched.notes, text).map_err(failed("writing", &fetched.notes))?;
    Ok(file)
}

fn lock(path: &Path, url: &str) -> Result<std::fs::File, ImageError> {
    let file = std::fs::File::create(path).map_err(failed("making", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(ImageError::Download {
            url: url.to_owned(),
            why: "it is being fetched already".to_owned(),
            is_final: false,
        }),
    }
}

/// A strong tag, or else the time of the last change.
fn version_of(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    text(header::ETAG)
        .filter(|tag| tag.starts_with('"'))
        .or_else(|| text(header::LAST_MODIFIED))
        .map(str::to_owned)
}

fn length_of(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What one version of a file is known by. A time alone is not enough: a file may change twice in a second.
fn identity(version: Option<&str>, total: Option<u64>) -> Option<String> {
    Some(format!("{} {}", version?, total?))
}

/// Where in the file an answer with a part of it begins.
fn begin(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    map.insert(header::USER_AGENT, HeaderValue::from_static("fairway"));
    for (name, value) in headers {
        let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header"))?;
        // The value may be a secret.
        let value =
            HeaderValue::from_str(value).map_err(|_| format!("the value of {name} cannot be sent"))?;
        map.append(name, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
