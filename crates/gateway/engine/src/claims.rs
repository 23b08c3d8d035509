//! Whose host names are, over a restart: what a workspace has it keeps, so who had what is written down, in ConfigMaps of the
//! root workspace that no tenant can write.
//!
//! A claim is a line: `127.0.0.1:8080 http www.example.com`, or `name www.example.com` for what the name server says. Few
//! claims of a workspace are in one object, many in several by a hash of the name, so that a change writes little.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Clients, Failure, Requests, Shutdown};
use fairway_gateway_routes::build::{Holders, Holding};
use fairway_gateway_routes::hostname;
use fairway_gateway_routes::settings::Binding;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::bindings::Bindings;
use crate::names::Owners;
use crate::statuses::MANAGER;

/// Who remembers, in the API.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-gateway-claims";

const ALL: &str = "/api/v1/namespaces/kube-system/configmaps";
/// By which the objects are found.
const LABEL: (&str, &str) = ("fairway.dev/gateway-claims", "true");
/// A burst of changes is one write.
const SETTLE: Duration = Duration::from_millis(500);
/// Before what failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// Claims of a workspace that are in one object.
const FEW: usize = 500;
/// In how many more are.
const PARTS: u64 = 16;

/// Who has what now.
#[derive(Clone, Default)]
pub(crate) struct Claims {
    pub(crate) holders: Arc<Holders>,
    pub(crate) owners: Arc<Owners>,
    pub(crate) bindings: Bindings,
}

/// The latest claims; none before the first table, which is no reason to forget what is written.
pub(crate) type Latest = Option<Claims>;

/// Who had what at the end of the last run.
#[derive(Default)]
pub(crate) struct Remembered {
    pub(crate) holders: Holders,
    pub(crate) owners: Owners,
}

/// Texts of objects, by their names.
type Objects = BTreeMap<String, Object>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Object {
    workspace: String,
    text: String,
}

/// Reads what was written down; waits until it can.
pub(crate) async fn remember(clients: &Clients) -> Remembered {
    let requests = Requests::new(clients.root());
    loop {
        match read(&requests).await {
            Ok(objects) => return remembered(&objects),
            Err(failure) => {
                let why = failure.sentence();
                warn!(
                    why,
                    "nothing is served before it is known whose host names are; it is tried again"
                );
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn read(requests: &Requests) -> Result<Objects, Failure> {
    let selector = format!("{}={}", LABEL.0, LABEL.1);
    let found = requests.list_selected(ALL, &selector).await?;
    let objects = found.iter().map(|object| {
        let text = |field: &str| object["data"][field].as_str().unwrap_or("").to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let object = Object {
            workspace: text("workspace"),
            text: text("claims"),
        };
        (name, object)
    });
    Ok(objects.collect())
}

/// Writes claims down until the end.
pub(crate) async fn keep(clients: Clients, mut claims: watch::Receiver<Latest>, mut shutdown: Shutdown) {
    let requests = Requests::new(clients.root());
    let mut there: Option<Objects> = None;
    let mut is_last = false;
    while !is_last {
        tokio::select! {
            () = shutdown.wait() => is_last = true,
            changed = claims.changed() => if changed.is_err() { return },
        }
        if !is_last {
            tokio::select! {
                () = shutdown.wait() => is_last = true,
                () = tokio::time::sleep(SETTLE) => {}
            }
        }
        loop {
            let Some(latest) = claims.borrow_and_update().clone() else {
                break;
            };
            let wanted = objects(&latest);
            let Err(failure) = write(&requests, &mut there, &wanted).await else {
                break;
            };
            debug!(
                why = failure.sentence(),
                "whose host names are is not written down yet"
            );
            there = None;
            if is_last {
                return;
            }
            tokio::select! {
                () = shutdown.wait() => is_last = true,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }
}

async fn write(requests: &Requests, there: &mut Option<Objects>, wanted: &Objects) -> Result<(), Failure> {
    let known = match there {
        Some(known) => known,
        None => there.insert(read(requests).await?),
    };
    for (name, object) in wanted {
        let before = known.get(name);
        if before == Some(object) {
            continue;
        }
        let data = json!({"workspace": object.workspace, "claims": object.text});
        match before {
            None => {
                let made = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "data": data,
                    "metadata": {"name": name, "namespace": "kube-system", "labels": {LABEL.0: LABEL.1}},
                });
                let all = format!("{ALL}?fieldManager={MANAGER}");
                requests.create(&all, &made).await?;
            }
            Some(_) => {
                let path = format!("{ALL}/{name}?fieldManager={MANAGER}");
                let patch: Value = json!({"data": data});
                requests.merge(&path, &patch).await?;
            }
        }
        known.insert(name.clone(), object.clone());
    }
    let surplus: Vec<String> = known
        .keys()
        .filter(|name| !wanted.contains_key(*name))
        .cloned()
        .collect();
    for name in surplus {
        requests.delete(&format!("{ALL}/{name}")).await?;
        known.remove(&name);
    }
    Ok(())
}

/// The objects that say who has what.
fn objects(claims: &Claims) -> Objects {
    let mut lines: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for holding in claims.holders.list() {
        let host = hostname::show(&holding.host);
        let own = lines.entry(holding.workspace.clone()).or_default();
        for door in asked(holding.door, &claims.bindings) {
            let line = format!("{door} {} {host}", holding.class);
            own.push((hash(&host), line.trim_end().to_owned()));
        }
    }
    for (name, workspace) in claims.owners.iter() {
        let own = lines.entry(workspace.clone()).or_default();
        own.push((hash(name), format!("name {name}")));
    }
    let mut objects: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for (workspace, lines) in lines {
        let is_one = lines.len() <= FEW;
        for (hash, line) in lines {
            let part = if is_one { 0 } else { hash % PARTS };
            // Those of the system's own workspaces have a colon.
            let name = format!("fairway-gateway-claims-{}-{part}", workspace.replace(':', "."));
            let (_, own) = objects
                .entry(name)
                .or_insert_with(|| (workspace.clone(), Vec::new()));
            own.push(line);
        }
    }
    let objects = objects.into_iter().map(|(name, (workspace, mut lines))| {
        lines.sort_unstable();
        let text = lines.join("\n");
        (name, Object { workspace, text })
    });
    objects.collect()
}

/// A door, and the ports that it stands in for: after a restart these are asked for first.
fn asked(door: SocketAddr, bindings: &Bindings) -> impl Iterator<Item = SocketAddr> {
    let others = bindings.iter().filter_map(move |(asked, binding)| {
        let is_there =
            matches!(binding, Binding::Port(port) if asked.ip() == door.ip() && *port == door.port());
        (is_there && *asked != door).then_some(*asked)
    });
    std::iter::once(door).chain(others)
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn remembered(objects: &Objects) -> Remembered {
    let mut found = Remembered::default();
    let mut holdings = Vec::new();
    for object in objects.values() {
        for line in object.text.lines() {
            if let Some(name) = line.strip_prefix("name ") {
                found
                    .owners
                    .entry(name.to_owned())
                    .or_insert_with(|| object.workspace.clone());
            } else if let Some(holding) = holding(line, &object.workspace) {
                holdings.push(holding);
            } else {
                warn!(line, "what is written down of host names cannot be read");
            }
        }
    }
    found.holders = Holders::restore(holdings);
    found
}

fn holding(line: &str, workspace: &str) -> Option<Holding> {
    let mut words = line.split(' ');
    Some(Holding {
        door: words.next()?.parse().ok()?,
        class: Holding::class(words.next()?)?,
        host: hostname::read(words.next().unwrap_or("")).ok()?,
        workspace: workspace.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use fairway_gateway_routes::table::HostPattern;

    use super::*;

    fn claims(names: usize) -> Claims {
        let door = SocketAddr::from(([127, 0, 0, 1], 8080));
        let holding = |host: HostPattern, workspace: &str| Holding {
            door,
            class: "http",
            host,
            workspace: workspace.to_owned(),
        };
        let mut holdings = vec![
            holding(HostPattern::Any, "root"),
            holding(HostPattern::Wildcard("shop.com".to_owned()), "system:team"),
        ];
        holdings.extend((0..names).map(|at| holding(HostPattern::Exact(format!("h{at}.com")), "many")));
        let asked = SocketAddr::from(([127, 0, 0, 1], 80));
        Claims {
            holders: Arc::new(Holders::restore(holdings)),
            owners: Arc::new([("www.shop.com".to_owned(), "system:team".to_owned())].into()),
            bindings: [(asked, Binding::Port(8080)), (door, Binding::Port(8080))].into(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let before = claims(1);
        let written = objects(&before);
        let of_team = &written["fairway-gateway-claims-system.team-0"];
        assert_eq!(
            of_team.text,
            "127.0.0.1:80 http *.shop.com\n127.0.0.1:8080 http *.shop.com\nname www.shop.com"
        );
        let read = remembered(&written);
        assert_eq!(read.owners, *before.owners);
        let mut expected: Vec<Holding> = before.holders.list().collect();
        for holding in expected.clone() {
            let door = SocketAddr::from(([127, 0, 0, 1], 80));
            expected.push(Holding { door, ..holding });
        }
        expected.sort();
        let mut found: Vec<Holding> = read.holders.list().collect();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn many_are_written_in_parts() {
        let written = objects(&claims(2_000));
        let of_many = written.values().filter(|it| it.workspace == "many");
        assert_eq!(of_many.count(), 16);
        let largest = written.values().map(|it| it.text.len()).max().unwrap();
        assert!(largest < 64 * 1024, "{largest}");
    }

    #[test]
    fn nonsense_is_left_out() {
        let object = Object {
            workspace: "w".to_owned(),
            text: "x\n1.2.3.4:5 udp a\n1.2.3.4:5 http a b\n1.2.3.4:6 tcp".to_owned(),
        };
        let read = remembered(&[("o".to_owned(), object)].into());
        assert_eq!(read.holders.list().count(), 2);
    }
}
