//! What a request costs with one realm and with thousands: two servers side by side take turns at the same request, by a user of a
//! realm who has signed in there, so that what the machine does besides falls on both.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::sign_in::User;
use super::web::{SIGN_IN, Web};
use super::{PATIENCE, Platform};
use crate::client::{Call, Client, Endpoint};
use crate::figures::{median, milliseconds};
use crate::{kubeconfig, load};

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
/// A turn that meets something else on the machine is off by a tenth, which is as much as the floor allows: the median needs many.
const TURNS: usize = 15;
const REQUESTS: usize = 4_000;
const CLIENTS: usize = 4;
/// Clients that make realms.
const MAKERS: usize = 16;
/// For each thousand of realms, until all are ready.
const READY: Duration = Duration::from_secs(300);
const USER: &str = "bench";

pub(super) struct Compared {
    pub(super) count: usize,
    /// CPU milliseconds of a realm, with a user, until everything had settled.
    pub(super) creation_ms: f64,
    /// CPU milliseconds of a request, the median of the turns.
    pub(super) one_ms: f64,
    pub(super) many_ms: f64,
    /// The median of the turns' ratios: the two of a turn run in the same minute.
    pub(super) ratio: f64,
    /// Megabytes, with one and with all.
    pub(super) megabytes: (f64, f64),
}

pub(super) async fn measure(one: &Platform, many: &Platform, count: usize) -> Result<Compared> {
    make(one, 1).await?;
    let begun = Instant::now();
    let creation_ms = make(many, count).await?;
    eprintln!(
        "  {count} realms in {:.0} s, {creation_ms:.1} CPU ms each",
        begun.elapsed().as_secs_f64()
    );
    let sides = [
        Side::prepare(one, 0).await?,
        // In the midst of them.
        Side::prepare(many, count / 2).await?,
    ];
    for platform in [one, many] {
        platform.settle().await?;
    }
    let mut cpu = [Vec::new(), Vec::new()];
    // The first turn warms up and does not count.
    for turn in 0..=TURNS {
        for side in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            let used = sides[side].turn().await?;
            if turn > 0 {
                cpu[side].push(used);
            }
        }
    }
    let ratios = cpu[0].iter().zip(&cpu[1]).map(|(one, many)| many / one).collect();
    let megabytes = |platform: &Platform| -> Result<f64> { Ok(platform.resident()? as f64 / 1e6) };
    let [one_ms, many_ms] = cpu.map(median);
    Ok(Compared {
        count,
        creation_ms,
        one_ms,
        many_ms,
        ratio: median(ratios),
        megabytes: (megabytes(one)?, megabytes(many)?),
    })
}

fn name(number: usize) -> String {
    format!("org-{number:05}")
}

/// Makes organisations, each with a realm and a user in it; CPU milliseconds of each.
async fn make(platform: &Platform, count: usize) -> Result<f64> {
    let before = platform.settle().await?;
    let writers = Client::connect_many(&platform.server.endpoint, MAKERS).await?;
    load::send_all(writers, count, |number| {
        let workspace = json!({
            "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name(number)},
            "spec": {"type": {"name": "organization", "path": "root"}},
        });
        Call::create(WORKSPACES, workspace.to_string())
    })
    .await?;
    ready(platform, count).await?;
    let writers = Client::connect_many(&platform.server.endpoint, MAKERS).await?;
    load::send_all(writers, count, |number| {
        let user = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "User", "metadata": {"name": "somebody"},
            "spec": {"displayName": "Somebody"},
        });
        let path = format!("/clusters/root:{}/apis/fairway.dev/v1alpha1/users", name(number));
        Call::create(path, user.to_string())
    })
    .await?;
    let used = platform.settle().await?.saturating_sub(before);
    Ok(milliseconds(used) / count as f64)
}

async fn ready(platform: &Platform, count: usize) -> Result<()> {
    let patience = READY * u32::try_from(count / 1000 + 1)?;
    let begun = Instant::now();
    loop {
        let body = platform.client.send(Call::get(WORKSPACES)).await?.success()?;
        let list: Value = serde_json::from_slice(&body)?;
        let items = list["items"].as_array().into_iter().flatten();
        let found = items
            .filter(|it| it["spec"]["type"]["name"] == "organization" && it["status"]["phase"] == "Ready")
            .count();
        if found >= count {
            return Ok(());
        }
        if begun.elapsed() > patience {
            bail!("{found} of {count} organisations were ready after {patience:?}");
        }
        // Each look is a long list, which counts as cost of making them.
        tokio::time::sleep(Duration::from_millis(500) + begun.elapsed() / 10).await;
    }
}

/// One server and its user.
struct Side<'a> {
    platform: &'a Platform,
    user: User,
    path: String,
}

impl<'a> Side<'a> {
    async fn prepare(platform: &'a Platform, number: usize) -> Result<Self> {
        let realm = name(number);
        let said = platform
            .command(&["user", "create", USER, "--org", &realm])
            .await?;
        let password = said.split_once("Password: ").map(|(_, rest)| rest);
        let password = password.and_then(|rest| rest.split_whitespace().next());
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": USER},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("{realm}/{USER}")}],
        });
        let at = format!("/clusters/root:{realm}");
        let path = format!("{at}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
        platform
            .client
            .send(Call::create(path, binding.to_string()))
            .await?
            .success()?;
        let path = format!("{at}/api/v1/namespaces/default/configmaps/kube-root-ca.crt");
        appears(platform, &path).await?;
        Ok(Self {
            platform,
            user: User {
                realm,
                name: USER.to_owned(),
                password: password.context("no password was told")?.to_owned(),
            },
            path,
        })
    }

    /// CPU milliseconds of a request.
    async fn turn(&self) -> Result<f64> {
        // Anew each time, since a token does not live as long as all turns take.
        let mut web = Web::connect(&self.platform.data, SIGN_IN).await?;
        let token = self.user.sign_in(&mut web).await?;
        let endpoint = endpoint(self.platform, &self.platform.data, token)?;
        let clients = Client::connect_many(&endpoint, CLIENTS).await?;
        // What a sign-in leaves to do is not a request's.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = self.platform.cpu()?;
        let path = self.path.clone();
        load::send_all(clients, REQUESTS, move |_| Call::get(path.as_str())).await?;
        let used = self.platform.cpu()?.saturating_sub(before);
        Ok(milliseconds(used) / REQUESTS as f64)
    }
}

/// The API, with a token instead of a certificate.
fn endpoint(platform: &Platform, data: &Path, token: String) -> Result<Endpoint> {
    let authority = std::fs::read(data.join("pki/ca.crt")).context("cannot read the authority")?;
    let server = format!("https://{}", platform.server.endpoint.authority);
    kubeconfig::connect_to(&server, kubeconfig::tls(&authority, None)?, Some(token))
}

async fn appears(platform: &Platform, path: &str) -> Result<()> {
    let begun = Instant::now();
    while !platform.client.send(Call::get(path)).await?.status.is_success() {
        if begun.elapsed() > PATIENCE {
            bail!("{path} was not there after {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 100.0, 2.0]), 3.0);
        assert_eq!(median(vec![4.0, 2.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }
}
