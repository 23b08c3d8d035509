//! What comes with a request: KubeVirt's options of each verb.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::refusal::Refusal;

/// `StartOptions`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Start {
    /// The guest waits until somebody lets it run.
    pub paused: bool,
    /// Nothing is to be written.
    pub dry_run: Option<Vec<String>>,
}

/// `StopOptions`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Stop {
    /// Seconds that the guest has to shut down.
    pub grace_period: Option<i64>,
    /// Nothing is to be written.
    pub dry_run: Option<Vec<String>>,
}

/// `RestartOptions`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Restart {
    /// Seconds that the guest has to shut down: none, or as it says itself.
    pub grace_period_seconds: Option<i64>,
    /// Nothing is to be written.
    pub dry_run: Option<Vec<String>>,
}

/// `MigrateOptions`, `PauseOptions`, `UnpauseOptions`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Plain {
    /// Nothing is to be written.
    pub dry_run: Option<Vec<String>>,
}

impl Plain {
    /// Whether nothing is to happen.
    pub fn is_dry(&self) -> bool {
        self.dry_run.iter().flatten().next().is_some_and(|it| it == "All")
    }
}

/// `FreezeUnfreezeTimeout`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Freeze {
    /// A time as Go writes it.
    pub unfreeze_timeout: Option<String>,
}

/// Reads a body, JSON or YAML. None is as good as an empty one.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let value = match value(body)? {
        Value::Null => Value::Object(serde_json::Map::new()),
        value => value,
    };
    serde_json::from_value(value).map_err(|error| Refusal::malformed(&error))
}

/// Reads a body, whatever is in it.
pub fn value(body: &[u8]) -> Result<Value, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    // As upstream: what looks like JSON is read as JSON, so that the error speaks of that.
    if body.trim_ascii_start().starts_with(b"{") {
        return serde_json::from_slice(body).map_err(|error| Refusal::malformed(&error));
    }
    let text = std::str::from_utf8(body).map_err(|error| Refusal::malformed(&error))?;
    fairway_text_yaml::from_str(text, fairway_text_yaml::Limits::default())
        .map_err(|error| Refusal::malformed(&error))
}

/// Whole seconds of a time as Go writes it: `1h5m0s`, `300ms`. Parts of a second count as one.
pub fn seconds(text: &str) -> Result<u64, Refusal> {
    let nanos = fairway_text_gotext::duration::parse(text);
    let nanos = nanos.map_err(|error| Refusal::malformed(&error))?;
    match u64::try_from(nanos) {
        Ok(nanos) => Ok(nanos.div_ceil(1_000_000_000)),
        Err(_) => Err(Refusal::bad_request(format!("{text} is less than no time"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_or_yaml_or_nothing() {
        let paused = Start {
            paused: true,
            dry_run: None,
        };
        for (body, expected) in [
            ("", Start::default()),
            ("  \n", Start::default()),
            ("null", Start::default()),
            ("{}", Start::default()),
            (r#"{"paused":true,"unknown":1,"dryRun":null}"#, paused.clone()),
            ("paused: true\n", paused),
        ] {
            assert_eq!(read::<Start>(body.as_bytes()), Ok(expected), "{body:?}");
        }
        for body in [r#"{"paused":"#, r#"{"paused":"yes"}"#, "[1]", "\u{0}{"] {
            let refused = read::<Start>(body.as_bytes()).unwrap_err();
            assert_eq!((refused.code, refused.reason.as_str()), (400, "BadRequest"));
            assert!(
                refused.message.starts_with("Can not unmarshal Request body"),
                "{body:?}: {}",
                refused.message
            );
        }
    }

    #[test]
    fn only_all_is_dry() {
        for (body, dry) in [
            ("{}", false),
            (r#"{"dryRun":["All"]}"#, true),
            (r#"{"dryRun":[]}"#, false),
            (r#"{"dryRun":["some"]}"#, false),
        ] {
            assert_eq!(read::<Plain>(body.as_bytes()).unwrap().is_dry(), dry, "{body}");
        }
    }

    #[test]
    fn durations_of_go() {
        for (text, expected) in [
            ("0", 0),
            ("0s", 0),
            ("5m0s", 300),
            ("1h2m3s", 3723),
            ("1.5s", 2),
            ("300ms", 1),
            ("1us", 1),
            ("+10s", 10),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "5", "s", "5 s", "-5s", "5x", "1e3s", "99999999999h"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
