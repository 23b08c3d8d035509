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
    Goes {
        /// As it is, if that is known.
        live: Option<&'a Value>,
        /// The answer to a dry run, if one was asked for.
        answer: Option<&'a Value>,
    },
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

/// Whether a domain of machines knows what becomes of what runs, so that deletions are worth asking about.
pub fn is_answered(key: &ResourceKey) -> bool {
    ANSWERED
        .iter()
        .any(|group| key.group == *group || key.group.ends_with(".kubevirt.io"))
}

/// What a change does. `name` is the annotation in which domains answer.
pub fn judge(key: &ResourceKey, change: Change<'_>, name: &str) -> Impact {
    let (live, target, answer) = match change {
        Change::Stays => return Impact::None,
        Change::Goes { live, answer } => {
            let told = answer.and_then(|answer| said(answer, live, name));
            return match told {
                Some(impact) => impact,
                None if guard::is_precious(key) => Impact::DataLoss,
                None => Impact::LiveChange,
            };
        }
        Change::Written { live, target, answer } => (live, target, answer),
    };
    match answer {
        Some(Ok(object)) => {
            // What somebody wrote into the object is nobody's answer.
            let told = said(object, live, name).filter(|_| !annotation::has(target, name));
            if let Some(impact) = told {
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

/// What the answer to a dry run says that the object did not say before.
fn said(answer: &Value, live: Option<&Value>, name: &str) -> Option<Impact> {
    let word = annotation::get(answer, name);
    Impact::parse(word).filter(|_| live.is_none_or(|live| annotation::get(live, name) != word))
}

/// Whether a change was refused because the object cannot become this one.
pub fn is_immutable(refusal: &str) -> bool {
    let text = refusal.to_ascii_lowercase();
    [
        "immutable",
        "may not be changed",
        "cannot be changed",
        "forbidden: updates to",
        "cannot update datavolume spec",
        "update of vmi object is restricted",
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
        let goes = |answer| Change::Goes {
            live: Some(&plain),
            answer,
        };
        let made_again = answered("re-creation");
        let fixed = "admission webhook \"datavolume-validate.cdi.kubevirt.io\" denied the request:  Cannot update DataVolume Spec";
        let volume = ResourceKey::new("cdi.kubevirt.io", "DataVolume", "shop", "a");
        for (reason, key, change, expected) in [
            ("nothing happens", &map, Change::Stays, Impact::None),
            ("deleted", &map, goes(None), Impact::LiveChange),
            ("a disk is deleted", &disk, goes(None), Impact::DataLoss),
            ("a machine is deleted", &machine, goes(None), Impact::DataLoss),
            (
                "a machine is deleted and nobody answers",
                &machine,
                goes(Some(&plain)),
                Impact::DataLoss,
            ),
            (
                "a machine without disks is deleted",
                &machine,
                goes(Some(&made_again)),
                Impact::Recreation,
            ),
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
                "a disk that is filled",
                &volume,
                written(Some(&plain), &plain, Some(Err(fixed))),
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
