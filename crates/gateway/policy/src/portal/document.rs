//! The OpenAPI document of an APIProduct: when it is fetched, and what is told of it.
//!
//! As upstream has it, a document is fetched once for each generation of the product and kept in `status.openapi`. Unlike
//! there, what failed is tried again: a server that was away for a moment must not cost the documentation for good.

use serde_json::{Value, json};

use crate::status::Condition;

/// The largest document. It lives in an object that everybody who lists products reads.
pub const LARGEST: usize = 512 * 1024;
/// How long after a failure it is tried again, in seconds.
const AGAIN: i64 = 60;

const READY: &str = "OpenAPISpecReady";
const REASONS: [&str; 3] = ["SpecFetched", "SpecSizeTooLarge", "FetchFailed"];

/// What is to be done about a product's document.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted<'a> {
    /// There is none.
    Nothing,
    /// What is told of it stays. `again_in` is after how many seconds it is looked at again.
    Kept { told: Told, again_in: Option<i64> },
    /// It is at this address.
    Fetch(&'a str),
}

/// What became of fetching it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    Text(String),
    TooLarge,
    /// With the reason.
    Failed(String),
}

/// A condition, and what `status.openapi` is.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub condition: Condition,
    pub openapi: Value,
}

/// Where a product's document is.
fn address(product: &Value) -> Option<&str> {
    let url = product["spec"]["documentation"]["openAPISpecURL"].as_str();
    url.filter(|url| !url.is_empty())
}

/// `now` is in seconds. Of `status.openapi` only what is beside the document itself is looked at.
pub fn wanted(product: &Value, now: i64) -> Wanted<'_> {
    let Some(address) = address(product) else {
        return Wanted::Nothing;
    };
    let status = &product["status"];
    let openapi = &status["openapi"];
    let is_of_now = status["observedGeneration"] == product["metadata"]["generation"]
        && openapi["maxSizeUsed"] == LARGEST;
    let Some(condition) = is_of_now.then(|| known(status)).flatten() else {
        return Wanted::Fetch(address);
    };
    let again_in = (!condition.is_true).then(|| {
        let synced = openapi["lastSyncTime"].as_str().unwrap_or("");
        let synced = synced
            .parse::<jiff::Timestamp>()
            .map_or(0, jiff::Timestamp::as_second);
        // A time to come is not to be believed.
        (synced.min(now) + AGAIN) - now
    });
    if again_in.is_some_and(|left| left <= 0) {
        return Wanted::Fetch(address);
    }
    let told = Told {
        condition,
        openapi: openapi.clone(),
    };
    Wanted::Kept { told, again_in }
}

/// The condition that was told before.
fn known(status: &Value) -> Option<Condition> {
    let mut conditions = status["conditions"].as_array()?.iter();
    let found = conditions.find(|condition| condition["type"] == READY)?;
    Some(Condition {
        r#type: READY,
        is_true: found["status"] == "True",
        reason: REASONS.into_iter().find(|reason| found["reason"] == *reason)?,
        message: found["message"].as_str().unwrap_or("").to_owned(),
    })
}

/// What is told of a document that was fetched, or was not. `time` is when.
pub fn told(product: &Value, fetched: Fetched, time: &str) -> Told {
    let address = address(product).unwrap_or("");
    let (is_true, reason, message, raw) = match fetched {
        Fetched::Text(text) => {
            let message = "OpenAPI spec was successfully fetched".to_owned();
            (true, REASONS[0], message, text)
        }
        Fetched::TooLarge => {
            let message = format!("OpenAPI spec exceeds size limit ({LARGEST} bytes)");
            (false, REASONS[1], message, String::new())
        }
        Fetched::Failed(why) => {
            let message = format!("failed to fetch OpenAPI spec from {address}: {why}");
            (false, REASONS[2], message, String::new())
        }
    };
    Told {
        condition: Condition {
            r#type: READY,
            is_true,
            reason,
            message,
        },
        openapi: json!({"raw": raw, "lastSyncTime": time, "maxSizeUsed": LARGEST}),
    }
}

/// A product without its document, which decisions do not read and caches need not hold.
pub fn without_document(mut product: Value) -> Value {
    if let Some(openapi) = product["status"]["openapi"].as_object_mut() {
        openapi.remove("raw");
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-01T00:00:00Z";

    fn product() -> Value {
        json!({
            "metadata": {"generation": 2},
            "spec": {"documentation": {"openAPISpecURL": "https://docs.example/api.json"}},
        })
    }

    /// The product after something was told of it.
    fn after(told: &Told) -> Value {
        let mut product = product();
        product["status"] = json!({
            "observedGeneration": 2, "openapi": told.openapi,
            "conditions": [{
                "type": told.condition.r#type, "status": told.condition.status(),
                "reason": told.condition.reason, "message": told.condition.message,
            }],
        });
        without_document(product)
    }

    #[test]
    fn when_a_document_is_fetched() {
        let begun = TIME.parse::<jiff::Timestamp>().unwrap().as_second();
        let is_fetched = |product: &Value, now: i64| {
            wanted(product, now) == Wanted::Fetch("https://docs.example/api.json")
        };
        assert_eq!(wanted(&json!({}), begun), Wanted::Nothing, "there is none");
        assert!(is_fetched(&product(), begun), "the first time");
        let good = told(&product(), Fetched::Text("openapi: 3.1.0".into()), TIME);
        assert_eq!(
            (good.condition.is_true, good.condition.reason),
            (true, "SpecFetched")
        );
        assert_eq!(good.openapi["raw"], "openapi: 3.1.0");
        let seen = after(&good);
        let Wanted::Kept { told: kept, again_in } = wanted(&seen, begun + 1_000_000) else {
            panic!("once is enough");
        };
        assert_eq!((kept.condition, again_in), (good.condition, None));
        assert!(
            kept.openapi.get("raw").is_none(),
            "what is not seen is not written"
        );
        let mut changed = seen.clone();
        changed["metadata"]["generation"] = json!(3);
        assert!(is_fetched(&changed, begun), "the product has changed");
        let mut other_bound = seen;
        other_bound["status"]["openapi"]["maxSizeUsed"] = json!(1);
        assert!(is_fetched(&other_bound, begun), "more fits now");
        for (fetched, reason) in [
            (Fetched::TooLarge, "SpecSizeTooLarge"),
            (Fetched::Failed("it answered 404".into()), "FetchFailed"),
        ] {
            let bad = told(&product(), fetched, TIME);
            assert_eq!((bad.condition.is_true, bad.condition.reason), (false, reason));
            assert_eq!(bad.openapi["raw"], "");
            let seen = after(&bad);
            let Wanted::Kept { again_in, .. } = wanted(&seen, begun + 20) else {
                panic!("{reason}: not at once");
            };
            assert_eq!(again_in, Some(40), "{reason}");
            assert!(is_fetched(&seen, begun + 60), "{reason}: but after a while");
            let mut early = seen;
            early["status"]["openapi"]["lastSyncTime"] = json!("2126-01-01T00:00:00Z");
            let Wanted::Kept { again_in, .. } = wanted(&early, begun) else {
                panic!("{reason}: not at once");
            };
            assert_eq!(again_in, Some(60), "{reason}: a time to come");
        }
    }
}
