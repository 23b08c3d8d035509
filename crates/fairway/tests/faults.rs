//! The whole program against what happens to programs: `kill -9` at any moment, and a full disk.
//!
//! `FAIRWAY_KILLS` sets the number of kills under load.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[path = "faults/load.rs"]
mod load;
#[path = "faults/process.rs"]
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};

use load::{Writer, step_of, version};
use process::Process;

const WRITERS: usize = 6;

/// What a watcher has seen: it must see every step of every counter, in order, over any number of kills.
#[derive(Default)]
struct Seen {
    version: u64,
    counters: BTreeMap<usize, BTreeSet<u64>>,
}

impl Seen {
    fn take(&mut self, object: &ConfigMap) {
        let at = version(object);
        assert!(at > self.version, "version {at} came after {}", self.version);
        self.version = at;
        let name = object.metadata.name.as_deref().unwrap();
        let Some(writer) = name.strip_prefix('w').filter(|n| !n.contains('-')) else {
            return;
        };
        let writer: usize = writer.parse().unwrap();
        let step = step_of(object, writer);
        let steps = self.counters.entry(writer).or_default();
        assert!(
            steps.last().is_none_or(|last| step > *last),
            "writer {writer} went back from {:?} to {step}",
            steps.last()
        );
        steps.insert(step);
    }

    /// Fails if a step that was counted has never been seen.
    fn assert_complete(&self, writers: &[Writer], round: u32) {
        for (w, writer) in writers.iter().enumerate() {
            let missed: Vec<&u64> = writer
                .counted
                .keys()
                .filter(|step| !self.counters[&w].contains(step))
                .collect();
            assert!(
                missed.is_empty(),
                "round {round}: of writer {w} the watcher missed {missed:?}"
            );
        }
    }

    /// Follows until `until` has been seen, or the server is gone.
    async fn follow(&mut self, api: &Api<ConfigMap>, until: Option<u64>) {
        while until.is_none_or(|until| self.version < until) {
            let Ok(stream) = api
                .watch(&WatchParams::default(), &self.version.to_string())
                .await
            else {
                return;
            };
            let mut stream = stream.boxed();
            while until.is_none_or(|until| self.version < until) {
                match stream.try_next().await {
                    Ok(Some(WatchEvent::Added(object) | WatchEvent::Modified(object))) => self.take(&object),
                    Ok(Some(WatchEvent::Bookmark(_))) => {}
                    Ok(Some(other)) => panic!("{other:?}"),
                    Ok(None) | Err(_) => break,
                }
            }
            if until.is_none() {
                return;
            }
        }
    }
}

/// Compares what is there with what was acknowledged.
async fn verify(api: &Api<ConfigMap>, writers: &mut [Writer], round: u32) -> u64 {
    let list = api.list(&ListParams::default()).await.unwrap();
    let now: u64 = list
        .metadata
        .resource_version
        .as_deref()
        .unwrap()
        .parse()
        .unwrap();
    let found: BTreeMap<&str, &ConfigMap> = list
        .items
        .iter()
        .map(|o| (o.metadata.name.as_deref().unwrap(), o))
        .collect();
    for (w, writer) in writers.iter_mut().enumerate() {
        for (step, acknowledged) in &writer.created {
            let object = found.get(format!("w{w}-{step}").as_str());
            let object =
                object.unwrap_or_else(|| panic!("round {round}: w{w}-{step} was acknowledged and is gone"));
            assert_eq!(
                (step_of(object, w), version(object)),
                (*step, *acknowledged),
                "round {round}"
            );
        }
        for (name, object) in &found {
            if let Some(step) = name.strip_prefix(&format!("w{w}-")) {
                let step: u64 = step.parse().unwrap();
                assert_eq!(step_of(object, w), step, "round {round}");
                assert!(step < writer.next, "round {round}: {name} was never sent");
                // It was under way and has landed: from now on it must stay.
                writer.created.entry(step).or_insert(version(object));
            }
        }
        let counter = found[format!("w{w}").as_str()];
        let step = step_of(counter, w);
        let (last, acknowledged) = writer.counted.last_key_value().map_or((0, 0), |(s, v)| (*s, *v));
        assert!(
            step >= last && step < writer.next,
            "round {round}: writer {w} counted to {last}, found {step}"
        );
        assert!(
            version(counter) >= acknowledged,
            "round {round}: the version of w{w} went back"
        );
        assert!(
            step > last || acknowledged == 0 || version(counter) == acknowledged,
            "round {round}"
        );
        assert!(
            now >= version(counter),
            "round {round}: the list is older than its objects"
        );
        writer.counted.insert(step, version(counter));
    }
    now
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_no_watcher_has_a_gap() {
    let rounds: u32 = env::var("FAIRWAY_KILLS").map_or(20, |count| count.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut writers = vec![Writer::default(); WRITERS];
    let mut seen = Seen::default();
    let mut last = 0;
    for round in 0..rounds {
        let mut server = Process::start(directory.path());
        let api: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
        if round == 0 {
            for (w, writer) in writers.iter_mut().enumerate() {
                let text = load::filler(w, 0);
                let mut object = ConfigMap::default();
                object.metadata.name = Some(format!("w{w}"));
                object.data = Some(BTreeMap::from([
                    ("n".to_owned(), "0".to_owned()),
                    ("text".to_owned(), text),
                ]));
                seen.version = version(&api.create(&PostParams::default(), &object).await.unwrap());
                writer.next = 1;
                seen.counters.insert(w, BTreeSet::from([0]));
            }
        }
        let now = verify(&api, &mut writers, round).await;
        assert!(
            now >= last,
            "round {round}: the version went back from {last} to {now}"
        );
        // The watcher resumes where it was before the kill, and first catches up with what it missed.
        tokio::time::timeout(
            Duration::from_secs(30),
            seen.follow(&api, Some(now.min(newest(&writers)))),
        )
        .await
        .unwrap_or_else(|_| {
            panic!(
                "round {round}: the watcher stays behind at {} of {now}",
                seen.version
            )
        });
        seen.assert_complete(&writers, round);
        // From the very first writes on, in the middle of some of those that follow.
        let wanted = u64::from(round) * 37 % 190 + 1;
        let acknowledged = AtomicU64::new(0);
        let load = writers
            .iter_mut()
            .enumerate()
            .map(|(w, writer)| writer.run(&api, w, &acknowledged));
        let load = futures::future::join_all(load);
        let kill = async {
            let give_up = Instant::now() + Duration::from_secs(20);
            while acknowledged.load(Ordering::Relaxed) < wanted && Instant::now() < give_up {
                tokio::time::sleep(Duration::from_micros(300)).await;
            }
            tokio::time::sleep(Duration::from_micros(u64::from(round) * 7_919 % 4_000)).await;
            server.kill();
        };
        let (_, (), ()) = tokio::join!(load, kill, seen.follow(&api, None));
        last = newest(&writers).max(now);
    }
    let server = Process::start(directory.path());
    let api: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    verify(&api, &mut writers, rounds).await;
    let acknowledged: usize = writers.iter().map(|w| w.created.len() + w.counted.len()).sum();
    println!("{rounds} kills, {acknowledged} writes");
    assert!(
        acknowledged > 30 * rounds as usize,
        "only {acknowledged} writes were acknowledged"
    );
}

/// The newest version that a writer has been told of.
fn newest(writers: &[Writer]) -> u64 {
    writers
        .iter()
        .flat_map(|w| w.created.values().chain(w.counted.values()))
        .copied()
        .max()
        .unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_it_starts_leaves_a_directory_that_starts() {
    // Keys and certificates are made in the first moments of the first start.
    for round in 0..12_u64 {
        let directory = tempfile::tempdir().unwrap();
        for attempt in 0..2 {
            let mut child = Process::spawn(directory.path(), None);
            tokio::time::sleep(Duration::from_millis(round * 6 + attempt * 40)).await;
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let server = Process::start(directory.path());
        let secrets: Api<Secret> = Api::namespaced(server.client().await, "default");
        let mut secret = Secret::default();
        secret.metadata.name = Some("s".to_owned());
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
}

/// How many of the test's own objects there are; the server's controllers have some too.
async fn count(api: &Api<ConfigMap>) -> usize {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.iter()
        .filter(|o| o.metadata.name.as_deref().is_some_and(|n| n.starts_with("c0")))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_writes_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    // The default objects and some room; everything after that does not fit.
    let mut server = Process::start_limited(directory.path(), 6 * 1024 * 1024);
    let api: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    let object = |n: usize| {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(format!("c{n:04}"));
        object.data = Some(BTreeMap::from([(
            "text".to_owned(),
            n.to_string().repeat(20_000),
        )]));
        object
    };
    let mut stored = 0;
    let refused = loop {
        match api.create(&PostParams::default(), &object(stored)).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 2_000, "the limit was never reached");
    };
    println!("{stored} objects, then: {refused}");
    let kube::Error::Api(status) = refused else {
        panic!("not an answer: {refused}")
    };
    assert!(matches!(status.code, 503 | 507), "{status:?}");
    assert!(
        status.message.contains("full"),
        "the message says what to do: {}",
        status.message
    );
    for _ in 0..5 {
        api.create(&PostParams::default(), &object(stored))
            .await
            .unwrap_err();
        assert_eq!(count(&api).await, stored, "reads go on");
        assert!(api.get_opt("c0000").await.unwrap().is_some());
    }
    let from = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let mut events = api.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    let raised = std::process::Command::new("prlimit")
        .args(["--pid", &server.id().to_string(), "--fsize=unlimited:unlimited"])
        .status()
        .unwrap();
    assert!(raised.success());
    // With space, writing works again without a restart.
    let began = Instant::now();
    while let Err(error) = api.create(&PostParams::default(), &object(stored)).await {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "no write succeeds after space was made: {error}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let event = tokio::time::timeout(Duration::from_secs(20), events.try_next())
        .await
        .unwrap()
        .unwrap();
    assert!(
        matches!(event, Some(WatchEvent::Added(_))),
        "a watch that was opened before goes on: {event:?}"
    );
    api.delete("c0000", &DeleteParams::default()).await.unwrap();
    server.kill();
    let server = Process::start(directory.path());
    let api: Api<ConfigMap> = Api::namespaced(server.client().await, "default");
    assert_eq!(count(&api).await, stored);
}
