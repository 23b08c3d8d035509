//! Why a machine does not do what it is for: the chain from the object to the Service, and its first broken link.
//!
//! ```text
//! VirtualMachine → DataVolume → claim → image → scheduling → QEMU → boot → cloud-init → Service
//! ```
//!
//! Whoever asks collects [`Facts`]; [`chain`] judges each link by them, with the evidence that it judged by. What was not
//! collected, because somebody may not read it or nobody answers, makes a link unknown, never good.

mod guest;
mod machine;
mod service;
mod storage;

use serde_json::Value;

/// What is known. Objects as they were read; what could not be read is absent.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub namespace: String,
    pub name: String,
    /// The machine.
    pub vm: Option<Value>,
    /// Its instance.
    pub vmi: Option<Value>,
    /// DataVolumes of the namespace.
    pub data_volumes: Option<Vec<Value>>,
    /// Claims of the namespace.
    pub claims: Option<Vec<Value>>,
    /// DataSources that DataVolumes refer to, as far as they exist.
    pub data_sources: Option<Vec<Value>>,
    /// Nodes.
    pub nodes: Option<Vec<Value>>,
    /// Services of the namespace.
    pub services: Option<Vec<Value>>,
    /// EndpointSlices of the namespace.
    pub endpoint_slices: Option<Vec<Value>>,
    /// Events of the namespace.
    pub events: Vec<Value>,
    /// The end of what the guest printed on its console.
    pub console: Option<String>,
}

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It holds.
    Good,
    /// It holds nothing: the machine does without.
    Unused,
    /// It cannot be known from here.
    Unknown,
    /// It is being made.
    Waiting,
    /// Somebody wants it so.
    Off,
    /// It is broken.
    Broken,
}

impl State {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Unused => "-",
            Self::Unknown => "unknown",
            Self::Waiting => "waiting",
            Self::Off => "off",
            Self::Broken => "BROKEN",
        }
    }

    fn ends_chain(self) -> bool {
        matches!(self, Self::Waiting | Self::Off | Self::Broken)
    }
}

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it is.
    pub name: &'static str,
    pub state: State,
    /// One sentence.
    pub finding: String,
    /// What shows it: conditions, events, lines of the console.
    pub evidence: Vec<String>,
    /// What to do.
    pub advice: Option<String>,
}

impl Link {
    fn new(name: &'static str, state: State, finding: impl Into<String>) -> Self {
        Self {
            name,
            state,
            finding: finding.into(),
            evidence: Vec::new(),
            advice: None,
        }
    }

    fn shown_by(mut self, evidence: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    fn advised(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// The links, in order, up to the first at which the chain ends.
pub fn chain(facts: &Facts) -> Vec<Link> {
    let judges: [fn(&Facts) -> Link; 9] = [
        machine::machine,
        storage::data_volumes,
        storage::claims,
        storage::image,
        machine::scheduling,
        machine::process,
        guest::boot,
        guest::cloud_init,
        service::services,
    ];
    let mut links = Vec::new();
    for judge in judges {
        let link = judge(facts);
        let is_last = link.state.ends_chain();
        links.push(link);
        if is_last {
            break;
        }
    }
    links
}

/// What the chain comes to.
pub fn verdict(links: &[Link]) -> String {
    match links.last() {
        Some(link) if link.state == State::Broken => {
            format!("the first broken link is {}: {}", link.name, link.finding)
        }
        Some(link) if link.state == State::Waiting => {
            format!(
                "nothing is broken; {} is not done yet: {}",
                link.name, link.finding
            )
        }
        Some(link) if link.state == State::Off => format!("nothing is broken: {}", link.finding),
        _ => {
            let unknown: Vec<&str> = links
                .iter()
                .filter(|it| it.state == State::Unknown)
                .map(|it| it.name)
                .collect();
            match unknown.as_slice() {
                [] => "every link holds".to_owned(),
                some => format!("no link is broken; not known: {}", some.join(", ")),
            }
        }
    }
}

/// The chain for people.
pub fn text(facts: &Facts) -> String {
    let links = chain(facts);
    let width = links.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for link in &links {
        text += &format!(
            "{:width$}  {:7}  {}\n",
            link.name,
            link.state.word(),
            link.finding
        );
    }
    text += &format!("\n{}/{}: {}\n", facts.namespace, facts.name, verdict(&links));
    if let Some(link) = links.last().filter(|it| it.state.ends_chain()) {
        for line in &link.evidence {
            text += &format!("  | {line}\n");
        }
        if let Some(advice) = &link.advice {
            text += &format!("  > {advice}\n");
        }
    }
    text
}

fn field<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn name(object: &Value) -> &str {
    field(object, "/metadata/name")
}

fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A condition, whatever it says.
fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    items(object, "/status/conditions")
        .iter()
        .find(|it| it["type"] == kind)
}

/// `Type=Status (Reason): message`.
fn told(condition: &Value) -> String {
    let mut text = format!(
        "condition {}={}",
        field(condition, "/type"),
        field(condition, "/status")
    );
    if !field(condition, "/reason").is_empty() {
        text += &format!(" ({})", field(condition, "/reason"));
    }
    if !field(condition, "/message").is_empty() {
        text += &format!(": {}", field(condition, "/message"));
    }
    text
}

/// What was said about an object that is a warning, the last first, and no more than three.
fn warnings(facts: &Facts, kind: &str, name: &str) -> Vec<String> {
    let mut found: Vec<&Value> = facts
        .events
        .iter()
        .filter(|it| it["involvedObject"]["kind"] == kind && it["involvedObject"]["name"] == name)
        .filter(|it| it["type"] == "Warning")
        .collect();
    found.sort_by_key(|it| std::cmp::Reverse(moment(it).to_owned()));
    let line = |it: &&Value| format!("event {}: {}", field(it, "/reason"), field(it, "/message"));
    found.iter().take(3).map(line).collect()
}

/// When something was last seen.
fn moment(event: &Value) -> &str {
    [
        "/lastTimestamp",
        "/eventTime",
        "/firstTimestamp",
        "/metadata/creationTimestamp",
    ]
    .into_iter()
    .map(|pointer| field(event, pointer))
    .find(|it| !it.is_empty())
    .unwrap_or_default()
}

#[cfg(test)]
mod tests;
