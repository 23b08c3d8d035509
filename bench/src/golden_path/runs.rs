//! Runs of the template `virtual-machine`, one after the other, from the request that the portal's form sends until the run says that
//! it has succeeded. The end is seen by a watch: the stream of events that the portal shows looks only now and then.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::Platform;
use super::web::{PORTAL, SIGN_IN, Web};
use crate::client::Call;
use crate::figures::milliseconds;

const VOYAGES: &str = "/apis/fairway.dev/v1alpha1/namespaces/default/voyages";
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications";
const ENTITY: &str = "/api/catalog/entities/by-name/component/default";
/// Nobody has the other half of it.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0 nobody@example";
/// What takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one run took until it had succeeded.
pub(super) struct Run {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// Until its entity was in the catalog, too, which reads the repository on its own.
    pub(super) listed: Duration,
    /// The server's CPU time when it began.
    before: Duration,
}

/// The runs, and the CPU of each with everything that was done for it afterwards, such as the sync of its Application.
pub(super) async fn measure(platform: &Platform, count: usize) -> Result<(Vec<Run>, Duration)> {
    // Whatever is made once, such as compiled schemas and the Namespace, is not what each one costs.
    run(platform, "first-of-all").await?;
    let (mut all, mut settled) = (Vec::new(), Duration::ZERO);
    platform.settle().await?;
    for number in 0..count {
        let name = format!("machine-{number:03}");
        let run = run(platform, &name).await?;
        eprintln!(
            "  {name}: {:.0} ms, {:.0} CPU ms",
            milliseconds(run.wall),
            milliseconds(run.cpu)
        );
        // The next one must not pay for this one's sync.
        settled += platform.settle().await?.saturating_sub(run.before);
        all.push(run);
    }
    let count = u32::try_from(count.max(1))?;
    Ok((all, settled / count))
}

async fn run(platform: &Platform, name: &str) -> Result<Run> {
    // Signed in anew, since a token does not live as long as all runs take.
    let token = {
        let mut web = Web::connect(&platform.data, SIGN_IN).await?;
        platform.administrator.sign_in(&mut web).await?
    };
    let mut web = Web::connect(&platform.data, PORTAL).await?;
    let mut stream = watch(platform).await?;
    let order = json!({
        "templateRef": "template:default/virtual-machine",
        "values": {"name": name, "owner": "platform", "sshKey": KEY},
    });
    let before = platform.settle().await?;
    let begun = Instant::now();
    let made = web
        .post("/api/scaffolder/v2/tasks", &token, &order)
        .await?
        .json()?;
    let id = made["id"].as_str().context("the run has no id")?;
    let voyage = id.rsplit('.').next().unwrap_or(id);
    let ended = tokio::time::timeout(PATIENCE, ended(&mut stream, voyage)).await;
    let phase = ended.context("the run did not end")??;
    let (wall, cpu) = (begun.elapsed(), platform.cpu()?.saturating_sub(before));
    if phase != "Succeeded" {
        bail!("the run of {name} ended {phase}");
    }
    exists(platform, &mut web, &token, name).await?;
    Ok(Run {
        wall,
        cpu,
        listed: begun.elapsed(),
        before,
    })
}

/// A run that says it has succeeded and made nothing would be quick.
async fn exists(platform: &Platform, web: &mut Web, token: &str, name: &str) -> Result<()> {
    for path in [
        format!("/apis/fairway.dev/v1alpha1/repositories/{name}"),
        format!("{APPLICATIONS}/{name}"),
    ] {
        let reply = platform.client.send(Call::get(path.as_str())).await?;
        reply.success().with_context(|| format!("no {path}"))?;
    }
    let begun = Instant::now();
    while !web
        .get(&format!("{ENTITY}/{name}"), Some(token))
        .await?
        .status
        .is_success()
    {
        if begun.elapsed() > PATIENCE {
            bail!("{name} is not in the catalog");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Every change of a run from now on.
async fn watch(platform: &Platform) -> Result<Incoming> {
    let list = platform.client.send(Call::get(VOYAGES)).await?.success()?;
    let list: Value = serde_json::from_slice(&list)?;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let path = format!("{VOYAGES}?watch=1&resourceVersion={revision}");
    platform.client.stream(path).await
}

/// The phase in which a run has ended.
async fn ended(stream: &mut Incoming, name: &str) -> Result<String> {
    let mut buffer = BytesMut::new();
    while let Some(frame) = stream.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let line = buffer.split_to(end + 1);
            let event: Value = serde_json::from_slice(&line).context("an event that is not JSON")?;
            let voyage = &event["object"];
            let phase = voyage["status"]["phase"].as_str().unwrap_or_default();
            if voyage["metadata"]["name"] == name && matches!(phase, "Succeeded" | "Failed" | "Cancelled") {
                return Ok(phase.to_owned());
            }
        }
    }
    bail!("the watch ended before the run")
}
