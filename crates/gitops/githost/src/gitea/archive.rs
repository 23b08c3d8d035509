//! A revision as an archive, packed while it is sent: how Backstage reads a directory.

use std::time::Duration;

use http::StatusCode;
use tracing::debug;

use super::call::{Answer, Call, Problem};
use crate::access::Verb;
use crate::fetch::converse;
use crate::route::Slug;
use crate::transport::{Input, channel, full};

const TIMEOUT: Duration = Duration::from_secs(3600);

/// `GET archive/{revision}.tar.gz` and `.zip`
pub(super) async fn get(call: &Call, slug: &Slug, name: &str) -> Result<Answer, Problem> {
    let formats = [
        (".tar.gz", "tar.gz", "application/gzip"),
        (".zip", "zip", "application/zip"),
    ];
    let found = formats
        .iter()
        .find_map(|(end, format, media)| Some((name.strip_suffix(end)?, *format, *media)));
    let (revision, format, media_type) =
        found.ok_or_else(|| Problem::wrong("an archive is REVISION.tar.gz or REVISION.zip"))?;
    let opened = call.open(slug, Verb::Get).await?;
    let commit = opened.repository.resolve(revision).await?;
    let busy = |_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too much is under way; try again in a moment",
        )
    };
    let turn = call.host.turn().await.map_err(busy)?;
    let running = opened
        .repository
        .command("archive")
        .arg(format!("--format={format}"))
        .arg(format!("--prefix={}/", slug.name))
        .arg(commit.as_str())
        .spawn()?;
    let (output, body) = channel();
    tokio::spawn(async move {
        let _turn = turn;
        let nothing = Input::new(full(""), false, 0);
        let sent = tokio::time::timeout(TIMEOUT, converse(running, nothing, &output)).await;
        if let Err(error) = sent.unwrap_or_else(|_| Err("packing took longer than an hour".to_owned())) {
            debug!(%error, "an archive broke off");
            output.fail(error).await;
        }
    });
    let file = format!("{}-{}.{format}", slug.name, &commit.as_str()[..10]);
    Ok(Answer::stream(body, media_type, &file))
}
