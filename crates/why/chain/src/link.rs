//! One link: how it is, since when, what shows it, and what to do.

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It holds.
    Good,
    /// There is none: it does without.
    Unused,
    /// It cannot be known from here.
    Unknown,
    /// It is being made, or waits for another one.
    Waiting,
    /// Somebody wants it so.
    Off,
    /// It is broken.
    Broken,
}

impl State {
    /// One word for people.
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

    /// One word for programs.
    pub fn key(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Broken => "broken",
            other => other.word(),
        }
    }
}

/// What shows how a link is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Where it was seen, such as `condition Ready=False (NotFound) of Gateway vms/web`.
    pub seen_in: String,
    /// When it was said, if that is known.
    pub at: Option<String>,
    /// The very words; empty where the place says all.
    pub message: String,
}

impl Evidence {
    pub(crate) fn new(seen_in: impl Into<String>, at: &str, message: &str) -> Self {
        Self {
            seen_in: seen_in.into(),
            at: Some(at.to_owned()).filter(|it| !it.is_empty()),
            message: cut(message.trim(), 1000),
        }
    }
}

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it is.
    pub name: &'static str,
    pub state: State,
    /// When it came to be as it is, if that is known.
    pub at: Option<String>,
    /// One sentence.
    pub finding: String,
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub advice: Option<String>,
}

impl Link {
    pub(crate) fn new(name: &'static str, state: State, finding: impl Into<String>) -> Self {
        Self {
            name,
            state,
            at: None,
            finding: first_line(&finding.into()),
            evidence: Vec::new(),
            advice: None,
        }
    }

    pub(crate) fn since(mut self, at: &str) -> Self {
        self.at = Some(at.to_owned()).filter(|it| !it.is_empty());
        self
    }

    /// Adds what shows it. Without a time of its own, the link has the time of the first that has one.
    pub(crate) fn shown_by(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        for it in evidence {
            let is_told = |told: &Evidence| told.seen_in == it.seen_in && told.message == it.message;
            if self.evidence.iter().any(is_told) {
                continue;
            }
            if self.at.is_none() {
                self.at.clone_from(&it.at);
            }
            self.evidence.push(it);
        }
        self
    }

    pub(crate) fn advised(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// What a message says first. Programs put whole logs into conditions.
fn first_line(text: &str) -> String {
    cut(text.lines().next().unwrap_or_default().trim_end(), 400)
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
