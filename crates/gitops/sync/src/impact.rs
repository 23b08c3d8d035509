//! What a change to an object does to what runs. The domain that owns a kind knows it, and answers a dry run with an annotation;
//! what nobody answers for is judged by what is done to the object.

use serde_json::Value;

use crate::annotation;
use crate::guard;
use crate::key::ResourceKey;

/// What a change does, from harmless to grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Nothing that runs is affected.
    None,
    /// It takes effect while everything runs on.
    LiveChange,
    /// Nobody who knows the kind has answered.
    Unknown,
    /// A machine moves to another node.
    Migration,
    /// Something stops and starts again.
    Restart,
    /// The object has to be deleted and made anew.
    Recreation,
    /// What is lost cannot be made good by syncing again.
    DataLoss,
}

impl Impact {
    /// As the annotation and people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::LiveChange => "live change",
            Self::Unknown => "unknown",
            Self::Migration => "migration",
            Self::Restart => "restart",
            Self::Recreation => "re-creation",
            Self::DataLoss => "data loss",
        }
    }

    /// Reads the word; case, spaces and dashes do not matter.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |text: &str| -> String {
            let letters = text.chars().filter(char::is_ascii_alphabetic);
            letters.map(|letter| letter.to_ascii_lowercase()).collect()
        };
        let wanted = plain(text);
        [
            Self::None,
            Self::LiveChange,
            Self::Unknown,
            Self::Migration,
            Self::Restart,
            Self::Recreation,
            Self::DataLoss,
        ]
        .into_iter()
        .find(|impact| plain(impact.as_str()) == wanted)
    }
}

/// What would be done to an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change<'a> {
    /// Nothing.
    Stays,
    /// It is deleted.
    Goes,
    /// It is written, and this is what the API says to that.
    Written {
        /// As it is; none: it is made.
        live: Option<&'a Value>,
        /// As it is declared.
        target: &'a Value,
        /// The answer to the dry run: the object, or why it was refused. None if nobody could be asked.
        answer: Option<Result<&'a Value, &'a str>>,
    },
}

/// Kinds of domains that answer dry runs: where they do not, nobody knows.
const ANSWERED: &[&str] = &["kubevirt.io", "cdi.kubevirt.io"];

/// What a change does. `name` is the annotation in which domains answer.
pub fn judge(key: &ResourceKey, change: Change<'_>, name: &str) -> Impact {
    let (live, target, answer) = match change {
        Change::Stays => return Impact::None,
        Change::Goes if guard::is_precious(key) => return Impact::DataLoss,
        Change::Goes => return Impact::LiveChange,
        Change::Written { live, target, answer } => (live, target, answer),
    };
    match answer {
        Some(Ok(object)) => {
            let said = annotation::get(object, name);
            // What somebody wrote into the object is nobody's answer.
            let is_answer =
                !annotation::has(target, name) && live.is_none_or(|live| annotation::get(live, name) != said);
            if let Some(impact) = Impact::parse(said).filter(|_| is_answer) {
                return impact;
            }
        }
        Some(Err(why)) if live.is_some() && is_immutable(why) => {
            return match guard::is_precious(key) {
                true => Impact::DataLoss,
                false => Impact::Recreation,
            };
        }
        Some(Err(_)) | None => return Impact::Unknown,
    }
    match live {
        _ if ANSWERED.contains(&key.group.as_str()) => Impact::Unknown,
        None => Impact::None,
        Some(_) => Impact::LiveChange,
    }
}

/// Whether a change was refused because the object cannot become this one.
pub fn is_immutable(refusal: &str) -> bool {
    let text = refusal.to_ascii_lowercase();
    [
        "immutable",
        "may not be changed",
        "cannot be changed",
        "forbidden: updates to",
    ]
    .iter()
    .any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAME: &str = "fairway.dev/impact";

    #[test]
    fn words() {
        for (text, expected) in [
            ("none", Some(Impact::None)),
            ("Live Change", Some(Impact::LiveChange)),
            ("live-change", Some(Impact::LiveChange)),
            ("Recreation", Some(Impact::Recreation)),
            ("re-creation", Some(Impact::Recreation)),
            ("DataLoss", Some(Impact::DataLoss)),
            ("terrible", None),
            ("", None),
        ] {
            assert_eq!(Impact::parse(text), expected, "{text}");
        }
        assert!(Impact::DataLoss > Impact::Restart && Impact::Unknown > Impact::LiveChange);
    }

    #[test]
    fn who_knows_answers_and_the_rest_is_judged() {
        let map = ResourceKey::new("", "ConfigMap", "shop", "a");
        let disk = ResourceKey::new("", "PersistentVolumeClaim", "shop", "a");
        let machine = ResourceKey::new("kubevirt.io", "VirtualMachine", "shop", "a");
        let plain = json!({"metadata": {"name": "a"}});
        let answered = |word: &str| json!({"metadata": {"name": "a", "annotations": {NAME: word}}});
        let (restart, nonsense) = (answered("restart"), answered("bad"));
        let immutable = "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: field is immutable";
        let written = |live, target, answer| Change::Written { live, target, answer };
        for (reason, key, change, expected) in [
            ("nothing happens", &map, Change::Stays, Impact::None),
            ("deleted", &map, Change::Goes, Impact::LiveChange),
            ("a disk is deleted", &disk, Change::Goes, Impact::DataLoss),
            ("a machine is deleted", &machine, Change::Goes, Impact::DataLoss),
            (
                "made",
                &map,
                written(None, &plain, Some(Ok(&plain))),
                Impact::None,
            ),
            (
                "changed",
                &map,
                written(Some(&plain), &plain, Some(Ok(&plain))),
                Impact::LiveChange,
            ),
            (
                "answered",
                &machine,
                written(Some(&plain), &plain, Some(Ok(&restart))),
                Impact::Restart,
            ),
            (
                "nobody answers",
                &machine,
                written(Some(&plain), &plain, Some(Ok(&plain))),
                Impact::Unknown,
            ),
            (
                "not a word",
                &machine,
                written(Some(&plain), &plain, Some(Ok(&nonsense))),
                Impact::Unknown,
            ),
            (
                "declared by the author",
                &map,
                written(Some(&plain), &restart, Some(Ok(&restart))),
                Impact::LiveChange,
            ),
            (
                "left over",
                &map,
                written(Some(&restart), &plain, Some(Ok(&restart))),
                Impact::LiveChange,
            ),
            (
                "immutable",
                &map,
                written(Some(&plain), &plain, Some(Err(immutable))),
                Impact::Recreation,
            ),
            (
                "an immutable disk",
                &disk,
                written(Some(&plain), &plain, Some(Err(immutable))),
                Impact::DataLoss,
            ),
            (
                "refused",
                &map,
                written(Some(&plain), &plain, Some(Err("no"))),
                Impact::Unknown,
            ),
            ("not asked", &map, written(None, &plain, None), Impact::Unknown),
        ] {
            assert_eq!(judge(key, change, NAME), expected, "{reason}");
        }
    }
}
