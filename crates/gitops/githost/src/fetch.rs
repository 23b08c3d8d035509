//! Clone and fetch: `git upload-pack` between the two streams of a request.

use std::time::Duration;

use bytes::BytesMut;
use fairway_gitops_git::{GitError, Repository, Running};
use http::{HeaderMap, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tracing::debug;

use crate::pkt;
use crate::transport::{Body, Input, Output, channel, full, response};

/// The most that a client may say before it is served: wishes and what it has.
const MAX_REQUEST: u64 = 64 << 20;
/// How long a fetch may take altogether.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// What one fetch may take of memory: deltas of large repositories.
const MAX_MEMORY: u64 = 4 << 30;
const PIECE: usize = 64 << 10;

/// References that are nobody's business.
pub(crate) const HIDDEN: &str = "refs/fairway";

fn upload_pack(repository: &Repository, headers: &HeaderMap) -> fairway_gitops_git::Command {
    repository
        .command("upload-pack")
        .set("uploadpack.allowFilter=true")
        .set("uploadpack.allowAnySHA1InWant=true")
        .set(format!("transfer.hideRefs={HIDDEN}"))
        .set("core.packedGitLimit=512m")
        .set("pack.windowMemory=64m")
        .set("uploadpack.keepAlive=5")
        .env("GIT_PROTOCOL", protocol(headers))
        .max_memory(MAX_MEMORY)
        .args(["--stateless-rpc", "--strict", "--timeout=60"])
}

/// The protocol that a client asks for; nothing else of the header goes to a child.
fn protocol(headers: &HeaderMap) -> &'static str {
    let asked = headers.get("git-protocol").and_then(|value| value.to_str().ok());
    let has = |version: &str| asked.is_some_and(|text| text.split(':').any(|word| word == version));
    if has("version=2") {
        "version=2"
    } else if has("version=1") {
        "version=1"
    } else {
        ""
    }
}

/// What a repository has, for a fetch.
pub async fn refs(repository: &Repository, headers: &HeaderMap) -> Result<Response<Body>, GitError> {
    let printed = upload_pack(repository, headers)
        .arg("--http-backend-info-refs")
        .arg(repository.path())
        .output()
        .await?;
    let mut out = BytesMut::with_capacity(printed.len() + 64);
    if protocol(headers) != "version=2" {
        pkt::write(&mut out, b"# service=git-upload-pack\n");
        out.extend_from_slice(pkt::FLUSH);
    }
    out.extend_from_slice(&printed);
    Ok(response(
        StatusCode::OK,
        "application/x-git-upload-pack-advertisement",
        full(out.freeze()),
    ))
}

/// A conversation about what to send, and sending it.
pub fn rpc(
    repository: &Repository,
    headers: &HeaderMap,
    body: Body,
    is_gzip: bool,
    turn: OwnedSemaphorePermit,
) -> Result<Response<Body>, GitError> {
    let running = upload_pack(repository, headers).arg(repository.path()).spawn()?;
    let input = Input::new(body, is_gzip, MAX_REQUEST);
    let (output, body) = channel();
    tokio::spawn(async move {
        let _turn = turn;
        let work = converse(running, input, &output);
        match tokio::time::timeout(TIMEOUT, work).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                debug!(%error, "a fetch broke off");
                output.fail(error).await;
            }
            Err(_) => output.fail("the fetch took longer than an hour").await,
        }
    });
    Ok(response(
        StatusCode::OK,
        "application/x-git-upload-pack-result",
        body,
    ))
}

/// The child goes with this function, however it ends.
pub(crate) async fn converse(mut running: Running, mut input: Input, output: &Output) -> Result<(), String> {
    let (stdin, stdout, stderr) = (running.stdin.take(), running.stdout.take(), running.stderr.take());
    let speaking = async {
        let Some(mut stdin) = stdin else { return Ok(()) };
        while let Some(piece) = input.piece().await.map_err(|error| error.to_string())? {
            // A child that has heard enough closes its ear; it says itself whether that is wrong.
            if stdin.write_all(&piece).await.is_err() {
                break;
            }
        }
        Ok::<(), String>(())
    };
    let hearing = async {
        let Some(mut stdout) = stdout else { return Ok(()) };
        loop {
            let mut piece = BytesMut::with_capacity(PIECE);
            let count = stdout
                .read_buf(&mut piece)
                .await
                .map_err(|error| error.to_string())?;
            if count == 0 {
                return Ok::<(), String>(());
            }
            output
                .send(piece.freeze())
                .await
                .map_err(|gone| gone.to_string())?;
        }
    };
    let complaining = async {
        let mut said = Vec::new();
        if let Some(stderr) = stderr {
            let _ = stderr.take(4096).read_to_end(&mut said).await;
        }
        Ok::<Vec<u8>, String>(said)
    };
    let conversation = async { tokio::try_join!(speaking, hearing, complaining) };
    let ((), (), said) = tokio::select! {
        done = conversation => done?,
        () = output.left() => return Err("the client left".to_owned()),
    };
    match running.wait().await {
        Ok(true) => Ok(()),
        Ok(false) => Err(String::from_utf8_lossy(&said).trim().to_owned()),
        Err(error) => Err(error.full()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_known_protocols_are_handed_on() {
        for (header, expected) in [
            ("version=2", "version=2"),
            ("version=2:extra=x", "version=2"),
            ("version=1", "version=1"),
            ("version=9", ""),
            ("version=2;rm", ""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("git-protocol", HeaderValue::from_static(header));
            assert_eq!(protocol(&headers), expected, "{header}");
        }
    }
}
