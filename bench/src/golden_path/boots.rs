//! From the submission of a form to an SSH login: the template `virtual-machine` with the image `tiny`, by Fairway, and the same QEMU
//! arguments with the same seed by hand, in turns. What stands between is a run, a repository, the sync of its Application out of Git,
//! a disk and a network. The order and the login are a person's; ports of the host that lead to the machine are ours, as a Service.
//!
//! In the end a machine with connectivity is made and switched off: what the platform takes at rest once everything has been used.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::idle::{self, Idle};
use super::web::{PORTAL, SIGN_IN, Web};
use super::{Options, Platform};
use crate::client::Call;
use crate::machines::boot::{self, Boot, Template};
use crate::machines::by_hand::{self, Place};
use crate::machines::guest::Guest;
use crate::machines::login::{Key, USER};
use crate::{process, server};

/// What the template makes of the smallest size.
const GUEST: Guest = Guest {
    image: "tiny",
    memory: "128Mi",
    disk: 1024,
};
const NAMESPACE: &str = "user-vms";
const SERVICES: &str = "/api/v1/namespaces/user-vms/services";
const VOYAGES: &str = "/apis/fairway.dev/v1alpha1/namespaces/default/voyages";
const MACHINES: &str = "/apis/kubevirt.io/v1/namespaces/user-vms/virtualmachines";
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/user-vms/httproutes";
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications";
/// What takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(100);

/// Boots of both sides, and the platform at rest after them.
pub(super) struct Boots {
    pub(super) fairway: Vec<Boot>,
    pub(super) by_hand: Vec<Boot>,
    /// With a published machine that is switched off.
    pub(super) stopped: Idle,
}

/// A platform with an image, and who logs in.
struct Site {
    platform: Platform,
    scratch: PathBuf,
    key: Key,
}

/// An order that was taken: the run's name.
struct Ordered {
    voyage: String,
    machine: String,
}

pub(super) async fn measure(
    options: &Options,
    directory: &Path,
    count: usize,
    rest: Duration,
) -> Result<Boots> {
    let scratch = server::absolute(directory)?;
    let binary = server::absolute(&options.fairway)?;
    crate::machines::build_images(&binary, &scratch.join("data"), &[GUEST.image]).await?;
    let site = Site {
        platform: Platform::start(options, &scratch, &[]).await?,
        key: Key::new(&scratch).await?,
        scratch,
    };
    let outcome = site.all(count, rest).await;
    // Machines outlive their Fairway: none may be left.
    let cleared = site.clear().await;
    site.platform.server.stop().await?;
    let boots = outcome?;
    cleared?;
    Ok(boots)
}

impl Site {
    async fn all(&self, count: usize, rest: Duration) -> Result<Boots> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.create("/api/v1/namespaces", &namespace).await?;
        eprintln!("  a first boot, which is not counted");
        let (first, template) = self.boot("boot-first").await?;
        eprintln!("    {first}");
        let place = Place {
            scratch: &self.scratch,
            data: &self.platform.data,
            key: &self.key,
        };
        let (mut fairway, mut by_hand) = (Vec::new(), Vec::new());
        for number in 0..count {
            let ours = self.boot(&format!("boot-{number:03}")).await?.0;
            let hand = by_hand::run(place, &template).await?;
            eprintln!(
                "  round {} of {count}: Fairway {ours}; by hand {hand}",
                number + 1
            );
            fairway.push(ours);
            by_hand.push(hand);
        }
        Ok(Boots {
            fairway,
            by_hand,
            stopped: self.stopped(rest).await?,
        })
    }

    /// Orders a machine and logs in; the machine is decommissioned afterwards.
    async fn boot(&self, name: &str) -> Result<(Boot, Template)> {
        let port = self.door(name).await?;
        let mut web = self.web().await?;
        let token = self.token().await?;
        let before = self.platform.settle().await?;
        let since_boot = boot::uptime()?;
        let begun = Instant::now();
        let ordered = self.order(&mut web, &token, name, &json!({})).await?;
        let login = tokio::time::timeout(PATIENCE, self.key.login(port)).await;
        let Ok(login) = login else {
            let voyage = self.voyage(&ordered).await?;
            bail!(
                "nobody could log in to {name} within {PATIENCE:?}: its run says {}",
                voyage["status"]
            );
        };
        login?;
        let login = begun.elapsed();
        let (pid, directory) = boot::running(&self.platform.data)
            .pop()
            .context("somebody could log in, and there is no QEMU")?;
        let qemu = process::cpu_time(pid)?;
        // Whether QEMU and what stands beside it are Fairway's children or not, each counts once.
        let mut pids = self.platform.server.pids().to_vec();
        pids.push(pid);
        pids.extend(boot::others(&directory, pid));
        let all = process::families_cpu(&pids)?.saturating_sub(before);
        let boot = Boot {
            started: boot::started_at(pid)?.saturating_sub(since_boot),
            login,
            qemu,
            others: all.saturating_sub(qemu),
        };
        let template = boot::template(&self.scratch, GUEST, pid, &directory)?;
        self.succeeded(&ordered).await?;
        self.decommission(&ordered).await?;
        Ok((boot, template))
    }

    /// What is taken at rest with a machine that was published, ran, and is switched off.
    async fn stopped(&self, rest: Duration) -> Result<Idle> {
        let name = "published";
        let port = self.door(name).await?;
        let more =
            json!({"connectivity": true, "host": "published.apps.fairway.localhost", "auth": "api-key"});
        let (mut web, token) = (self.web().await?, self.token().await?);
        let ordered = self.order(&mut web, &token, name, &more).await?;
        tokio::time::timeout(PATIENCE, self.key.login(port))
            .await
            .with_context(|| format!("nobody could log in to {name} within {PATIENCE:?}"))??;
        self.succeeded(&ordered).await?;
        self.until("the route is accepted", async || {
            let route = self.get(&format!("{ROUTES}/{name}")).await?;
            Ok(route["status"]["parents"][0]["conditions"]
                .as_array()
                .is_some_and(|all| {
                    all.iter()
                        .any(|it| it["type"] == "Accepted" && it["status"] == "True")
                }))
        })
        .await?;
        // Git says that it runs: healed, it would be switched on again.
        let unhealed = json!({"spec": {"syncPolicy": {"automated": {"selfHeal": false}}}});
        self.merge(&format!("{APPLICATIONS}/{name}"), &unhealed).await?;
        let halted = json!({"spec": {"runStrategy": "Halted"}});
        self.merge(&format!("{MACHINES}/{name}"), &halted).await?;
        self.nothing_runs().await?;
        let idle = idle::measure(&self.platform, rest).await?;
        if !boot::running(&self.platform.data).is_empty() {
            bail!("the machine that was switched off runs again");
        }
        eprintln!("  with a published machine that is switched off: {idle}");
        self.decommission(&ordered).await?;
        Ok(idle)
    }

    async fn web(&self) -> Result<Web> {
        Web::connect(&self.platform.data, PORTAL).await
    }

    /// Signed in anew, since a token does not live as long as all boots take.
    async fn token(&self) -> Result<String> {
        let mut web = Web::connect(&self.platform.data, SIGN_IN).await?;
        self.platform.administrator.sign_in(&mut web).await
    }

    /// What the portal's form sends.
    async fn order(&self, web: &mut Web, token: &str, name: &str, more: &Value) -> Result<Ordered> {
        let mut values = json!({"name": name, "owner": "platform", "user": USER, "sshKey": self.key.public});
        if let (Some(values), Some(more)) = (values.as_object_mut(), more.as_object()) {
            values.extend(more.clone());
        }
        let order = json!({"templateRef": "template:default/virtual-machine", "values": values});
        let made = web
            .post("/api/scaffolder/v2/tasks", token, &order)
            .await?
            .json()?;
        let id = made["id"].as_str().context("the run has no id")?;
        Ok(Ordered {
            voyage: id.rsplit('.').next().unwrap_or(id).to_owned(),
            machine: name.to_owned(),
        })
    }

    /// A port of the host that leads to a machine, which need not be there yet.
    async fn door(&self, machine: &str) -> Result<u16> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": door(machine)},
            "spec": {"type": "NodePort", "selector": {"app": machine}, "ports": [{"name": "ssh", "port": 22}]}
        });
        self.create(SERVICES, &service).await?;
        let made = self.get(&format!("{SERVICES}/{}", door(machine))).await?;
        let port = made["spec"]["ports"][0]["nodePort"].as_u64();
        port.and_then(|port| u16::try_from(port).ok())
            .context("the Service has no port of the host")
    }

    async fn voyage(&self, ordered: &Ordered) -> Result<Value> {
        self.get(&format!("{VOYAGES}/{}", ordered.voyage)).await
    }

    /// A login is no success if the run that led to it is none.
    async fn succeeded(&self, ordered: &Ordered) -> Result<()> {
        self.until("the run has succeeded", async || {
            let voyage = self.voyage(ordered).await?;
            match voyage["status"]["phase"].as_str().unwrap_or_default() {
                "Succeeded" => Ok(true),
                "Failed" | "Cancelled" => {
                    bail!("the run of {} ended: {}", ordered.machine, voyage["status"])
                }
                _ => Ok(false),
            }
        })
        .await
    }

    async fn decommission(&self, ordered: &Ordered) -> Result<()> {
        self.platform
            .command(&["voyage", "decommission", &ordered.voyage])
            .await?;
        self.nothing_runs().await?;
        let path = format!("{SERVICES}/{}", door(&ordered.machine));
        self.platform.client.send(Call::delete(path)).await?.success()?;
        // What is left to do for it, such as removing its disk, is not the next one's.
        self.platform.settle().await?;
        Ok(())
    }

    async fn nothing_runs(&self) -> Result<()> {
        self.until("no machine runs", async || {
            Ok(boot::running(&self.platform.data).is_empty())
        })
        .await
    }

    /// After a failure Applications would bring machines back: they go first.
    async fn clear(&self) -> Result<()> {
        for path in [APPLICATIONS, MACHINES] {
            self.platform.client.send(Call::delete(path)).await?.success()?;
        }
        self.nothing_runs().await
    }

    async fn until<F>(&self, what: &str, mut ask: F) -> Result<()>
    where
        F: AsyncFnMut() -> Result<bool>,
    {
        let begun = Instant::now();
        while !ask().await? {
            if begun.elapsed() > PATIENCE {
                bail!("not within {PATIENCE:?}: {what}");
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn create(&self, path: &str, object: &Value) -> Result<()> {
        let reply = self
            .platform
            .client
            .send(Call::create(path, object.to_string()))
            .await?;
        reply.success().with_context(|| format!("creating at {path}"))?;
        Ok(())
    }

    async fn merge(&self, path: &str, change: &Value) -> Result<()> {
        let reply = self
            .platform
            .client
            .send(Call::merge(path, change.to_string()))
            .await?;
        reply.success().with_context(|| format!("changing {path}"))?;
        Ok(())
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let reply = self.platform.client.send(Call::get(path)).await?;
        let body = reply.success().with_context(|| format!("reading {path}"))?;
        Ok(serde_json::from_slice(&body)?)
    }
}

/// The Service that leads to a machine, beside the one that the template makes.
fn door(machine: &str) -> String {
    format!("{machine}-door")
}
