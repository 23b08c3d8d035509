//! A disk by itself: what it is filled from, how far that is, and the claim that holds it.
//!
//! A machine judges its disks by the same words; here is one that somebody asked about, whether a machine uses it or none.

use serde_json::Value;

use crate::Facts;
use crate::link::{Evidence, Link, State};
use crate::object::{self, condition, field, name, told};

/// What is known of a disk. Objects as they were read.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub name: String,
    /// What fills it, if something does.
    pub data_volume: Option<Value>,
    /// What holds it.
    pub claim: Option<Value>,
    /// The DataSource that it is filled from, as far as that exists; nothing if that cannot be known.
    pub data_sources: Option<Vec<Value>>,
    /// Events about both.
    pub events: Vec<Value>,
}

impl Disk {
    fn warnings(&self, kind: &str) -> Vec<Evidence> {
        object::warnings(&self.events, kind, &self.name)
    }
}

pub(crate) fn phase(dv: &Value) -> &str {
    match field(dv, "/status/phase") {
        "" => "new",
        phase => phase,
    }
}

fn is_filled(dv: &Value) -> bool {
    phase(dv) == "Succeeded"
}

/// What a DataVolume is to be filled from, if that is not there.
pub(crate) fn missing_source(sources: Option<&[Value]>, dv: &Value) -> Option<String> {
    let reference = &dv["spec"]["sourceRef"];
    let wanted = reference["name"].as_str()?;
    let own = field(dv, "/metadata/namespace");
    let namespace = reference["namespace"].as_str().unwrap_or(own);
    let is_it = |it: &&Value| name(it) == wanted && field(it, "/metadata/namespace") == namespace;
    let Some(found) = sources?.iter().find(is_it) else {
        return Some(format!(
            "the DataSource {namespace}/{wanted}, which does not exist"
        ));
    };
    let ready = condition(found, "Ready").filter(|it| it["status"] != "True")?;
    Some(format!(
        "the DataSource {namespace}/{wanted}, which is not ready: {}",
        field(ready, "/message")
    ))
}

/// What a DataVolume says that holds its filling up.
pub(crate) fn held_up(dv: &Value) -> Option<&Value> {
    let running = condition(dv, "Running").filter(|it| it["status"] == "False");
    running.filter(|it| !field(it, "/message").is_empty())
}

/// A filling that was tried, and failed.
pub(crate) fn failing(link: &'static str, dv: &Value, events: &[Evidence]) -> Option<Link> {
    let wanted = name(dv);
    let tries = dv["status"]["restartCount"].as_i64().unwrap_or(0);
    if phase(dv) != "Failed" && tries == 0 {
        return None;
    }
    let running = held_up(dv);
    let error = events.iter().find(|it| it.seen_in.starts_with("event Error "));
    let why = running.map_or("it failed", |it| field(it, "/message"));
    let why = error.map_or(why, |it| it.message.as_str()).to_owned();
    let state = format!("phase {}, tried {} times", phase(dv), tries + 1);
    Some(
        Link::new(link, State::Broken, format!("filling {wanted} fails: {why}"))
            .shown_by([Evidence::new(format!("status of DataVolume {wanted}"), "", &state)])
            .shown_by(running.map(|it| told(it, &format!("DataVolume {wanted}"))))
            .shown_by(events.iter().cloned())
            .advised(
                "correct the source or the size of the DataVolume as the message says, and delete it, so that it is made anew",
            ),
    )
}

/// How far filling is, in words.
pub(crate) fn progress(dv: &Value) -> String {
    match field(dv, "/status/progress") {
        "" | "N/A" => format!("{} is being filled: {}", name(dv), phase(dv)),
        progress => format!("{} is being filled: {}, {progress}", name(dv), phase(dv)),
    }
}

/// What fills a DataVolume, in words.
fn origin(dv: &Value) -> String {
    let reference = &dv["spec"]["sourceRef"];
    if let Some(named) = reference["name"].as_str() {
        let own = field(dv, "/metadata/namespace");
        let space = reference["namespace"].as_str().unwrap_or(own);
        return format!("{} {space}/{named}", field(reference, "/kind"));
    }
    let sources = dv["spec"]["source"].as_object();
    let Some((kind, source)) = sources.and_then(|it| it.iter().next()) else {
        return "nothing that it names".to_owned();
    };
    let place = match (field(source, "/url"), field(source, "/name")) {
        ("", "") => String::new(),
        ("", named) => format!(" {}/{named}", field(source, "/namespace")),
        (url, _) => format!(" {url}"),
    };
    format!("{kind}{place}")
}

fn unread(facts: &Facts, link: &'static str, plural: &'static str, kind: &str) -> Option<Link> {
    let why = facts.unreadable.get(plural)?;
    let place = format!("answer to reading {kind}");
    let unknown = Link::new(link, State::Unknown, format!("{kind} cannot be read"));
    Some(unknown.shown_by([Evidence::new(place, "", why)]))
}

/// The disk that was asked about, and what fills it, if something does.
fn parts(facts: &Facts) -> (Option<&Disk>, Option<&Value>) {
    let disk = facts.disk.as_ref();
    (disk, disk.and_then(|it| it.data_volume.as_ref()))
}

/// Whether there is what it is to be filled from.
pub(crate) fn source(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("source", state, finding);
    let (Some(disk), Some(dv)) = parts(facts) else {
        return unread(facts, "source", "datavolumes", "DataVolumes")
            .unwrap_or_else(|| link(State::Unused, "no DataVolume fills it".to_owned()));
    };
    let made = field(dv, "/metadata/creationTimestamp");
    if !is_filled(dv) {
        if let Some(missing) = missing_source(disk.data_sources.as_deref(), dv) {
            let finding = format!("the DataVolume {} is to be filled from {missing}", disk.name);
            return link(State::Broken, finding)
                .since(made)
                .shown_by(disk.warnings("DataVolume"))
                .advised("`fairway image list` and `kubectl get datasources -A` show what there is");
        }
        if disk.data_sources.is_none() && dv["spec"]["sourceRef"].is_object() {
            return unread(facts, "source", "datasources", "DataSources").unwrap_or_else(|| {
                link(
                    State::Unknown,
                    format!("whether there is {} is not known", origin(dv)),
                )
            });
        }
    }
    link(State::Good, origin(dv)).since(made)
}

/// How far filling is.
pub(crate) fn filling(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("filling", state, finding);
    let (Some(disk), Some(dv)) = parts(facts) else {
        return unread(facts, "filling", "datavolumes", "DataVolumes")
            .unwrap_or_else(|| link(State::Unused, "no DataVolume fills it".to_owned()));
    };
    if is_filled(dv) {
        let ready = condition(dv, "Ready").map_or("", |it| field(it, "/lastTransitionTime"));
        return link(State::Good, format!("{} has its content", disk.name)).since(ready);
    }
    let events = disk.warnings("DataVolume");
    if missing_source(disk.data_sources.as_deref(), dv).is_some() {
        return link(
            State::Waiting,
            "there is nothing that it could be filled from".to_owned(),
        );
    }
    if let Some(failed) = failing("filling", dv, &events) {
        return failed;
    }
    let running = held_up(dv).map(|it| told(it, &format!("DataVolume {}", disk.name)));
    let is_of_node = |it: &Evidence| it.seen_in.starts_with("event WaitingForNode ");
    match events.first() {
        Some(first) if is_of_node(first) && !facts.machines.is_empty() => {
            link(State::Waiting, format!("{} waits for a node", disk.name)).shown_by(events)
        }
        Some(first) => link(State::Broken, format!("{}: {}", progress(dv), first.message))
            .advised("do as the message says; filling goes on by itself")
            .shown_by(running)
            .shown_by(events),
        None if phase(dv) == "UploadReady" => link(
            State::Waiting,
            format!("{} waits for somebody to send its content", disk.name),
        )
        .shown_by(running)
        .advised("`fairway vm image-upload` or virtctl's sends it"),
        None => match &running {
            Some(said) => link(State::Waiting, format!("{}: {}", progress(dv), said.message)),
            None => link(State::Waiting, progress(dv)),
        }
        .shown_by(running),
    }
}

/// Whether a claim holds it.
pub(crate) fn claim(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("claim", state, finding);
    let (Some(disk), dv) = parts(facts) else {
        return link(State::Unknown, "there is no disk".to_owned());
    };
    let is_filling = dv.is_some_and(|it| !is_filled(it));
    let Some(claim) = &disk.claim else {
        let unread = unread(facts, "claim", "persistentvolumeclaims", "claims");
        return unread.unwrap_or_else(|| match is_filling {
            true => {
                let bound = dv.and_then(|it| condition(it, "Bound"));
                link(State::Waiting, format!("there is no claim {} yet", disk.name))
                    .shown_by(bound.map(|it| told(it, &format!("DataVolume {}", disk.name))))
            }
            false => link(
                State::Broken,
                format!("the claim {} is gone, and the disk with it", disk.name),
            )
            .advised("delete the DataVolume and make it anew; a snapshot may have what was on the disk"),
        });
    };
    let events = disk.warnings("PersistentVolumeClaim");
    let size = field(claim, "/status/capacity/storage");
    let class = field(claim, "/spec/storageClassName");
    match field(claim, "/status/phase") {
        "Bound" => {
            let more = [size, class].into_iter().filter(|it| !it.is_empty());
            let more: Vec<&str> = more.collect();
            let finding = match more.is_empty() {
                true => format!("{} Bound", disk.name),
                false => format!("{} Bound ({})", disk.name, more.join(", ")),
            };
            let bound = dv.and_then(|it| condition(it, "Bound"));
            link(State::Good, finding).since(bound.map_or("", |it| field(it, "/lastTransitionTime")))
        }
        "Lost" => link(
            State::Broken,
            format!("the claim {} has lost its volume", disk.name),
        )
        .shown_by(events)
        .advised("what was on it is in snapshots, if there are any; delete the claim and make it anew"),
        _ if is_filling => link(
            State::Waiting,
            format!("{} is bound when it is filled", disk.name),
        ),
        phase => {
            let phase = if phase.is_empty() { "Pending" } else { phase };
            match events.is_empty() {
                true => link(State::Waiting, format!("the claim {} is {phase}", disk.name)),
                false => link(
                    State::Broken,
                    format!("the claim {} is {phase}: {}", disk.name, events[0].message),
                )
                .shown_by(events)
                .advised("do as the message says; `kubectl describe pvc` shows all of it"),
            }
        }
    }
}
