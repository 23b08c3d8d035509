//! What the application's own addresses below `/api/fairway` stand for. Each is asked of the Kubernetes API in the user's name, so
//! that his rights are judged where everybody's are; these addresses only save the application from knowing how.

pub mod activity;

use fairway_portal_realm::params::BadParams;
use fairway_portal_realm::{Params, client};
use http::Method;
use serde_json::{Value, json};

/// The most entries of a list.
pub const MAX_ENTRIES: usize = 1_000;
/// Entries of a list if nobody says how many.
const USUAL_ENTRIES: usize = 100;

/// A request to the Kubernetes API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// One request whose answer is the answer.
    One {
        /// GET or POST.
        method: Method,
        /// With the workspace before it.
        path: String,
        /// What is sent.
        body: Option<Value>,
    },
    /// What happened in a workspace, the newest first.
    Activity {
        /// The workspace.
        workspace: String,
        /// So many entries.
        limit: usize,
    },
    /// Why an object is as it is: many requests, whose answers are judged.
    Why {
        /// The workspace.
        workspace: String,
        /// `KIND/NAME`.
        object: String,
        /// Its namespace, if it has one.
        namespace: Option<String>,
    },
}

/// Why an address stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such address.
    Unknown,
    /// It is asked with another method.
    Method(&'static str),
    /// A parameter or the body is wrong.
    Wrong(String),
}

impl From<BadParams> for Refusal {
    fn from(why: BadParams) -> Self {
        Self::Wrong(why.to_string())
    }
}

/// What follows `/api/fairway/` and whether it takes a body.
pub fn takes_body(what: &str) -> bool {
    what == "gateway/explain"
}

fn workspace(params: &Params) -> Result<String, Refusal> {
    let path = params.get("workspace").unwrap_or("root");
    let is_path = path.len() <= 512
        && path
            .split(':')
            .all(|part| client::is_name(part) && !part.contains('.'));
    match is_path {
        true => Ok(path.to_owned()),
        false => Err(Refusal::Wrong(format!(
            "workspace={path:?} is not a path such as root:acme"
        ))),
    }
}

fn name<'a>(params: &'a Params, of: &str) -> Result<&'a str, Refusal> {
    let text = params.text(of);
    match client::is_name(text) {
        true => Ok(text),
        false => Err(Refusal::Wrong(format!(
            "{of}={text:?} is not the name of an object"
        ))),
    }
}

/// What an address stands for; without a workspace it is the root's.
pub fn call(method: &Method, what: &str, query: &str, body: Option<Value>) -> Result<Call, Refusal> {
    let params = Params::parse(query)?;
    let expect = |expected: Method, name: &'static str| match *method == expected {
        true => Ok(()),
        false => Err(Refusal::Method(name)),
    };
    match what {
        "activity" => {
            expect(Method::GET, "GET")?;
            let limit = match params.get("limit") {
                None => USUAL_ENTRIES,
                Some(text) => text
                    .parse()
                    .map_err(|_| Refusal::Wrong(format!("limit={text:?} is not a number")))?,
            };
            Ok(Call::Activity {
                workspace: workspace(&params)?,
                limit: limit.clamp(1, MAX_ENTRIES),
            })
        }
        "gateway/explain" => {
            expect(Method::POST, "POST")?;
            let asked = body.filter(Value::is_object);
            let asked = asked.ok_or_else(|| {
                Refusal::Wrong("the body is to be {\"method\": …, \"url\": …, \"headers\": {…}}".to_owned())
            })?;
            Ok(Call::One {
                method: Method::POST,
                path: format!(
                    "/clusters/{}/apis/gateway.fairway.dev/v1alpha1/explanations",
                    workspace(&params)?
                ),
                body: Some(json!({"spec": asked})),
            })
        }
        "why" => {
            expect(Method::GET, "GET")?;
            let kind = params.text("kind");
            if kind.is_empty() || kind.len() > 63 || !kind.bytes().all(|it| it.is_ascii_alphanumeric()) {
                return Err(Refusal::Wrong(format!("kind={kind:?} is not a kind")));
            }
            let namespace = match params.get("namespace") {
                None | Some("") => None,
                Some(_) => Some(name(&params, "namespace")?.to_owned()),
            };
            Ok(Call::Why {
                workspace: workspace(&params)?,
                object: format!("{kind}/{}", name(&params, "name")?),
                namespace,
            })
        }
        "usage" => {
            expect(Method::GET, "GET")?;
            Ok(Call::One {
                method: Method::GET,
                path: format!(
                    "/clusters/{}/apis/gateway.fairway.dev/v1alpha1/counters",
                    workspace(&params)?
                ),
                body: None,
            })
        }
        "applications/plan" => {
            expect(Method::GET, "GET")?;
            let path = format!(
                "/clusters/{}/apis/argoproj.io/v1alpha1/namespaces/{}/applications/{}/plan",
                workspace(&params)?,
                name(&params, "namespace")?,
                name(&params, "name")?
            );
            Ok(Call::One {
                method: Method::POST,
                path,
                body: Some(plan(&params)?),
            })
        }
        _ => Err(Refusal::Unknown),
    }
}

/// As `fairway app plan` asks for it.
fn plan(params: &Params) -> Result<Value, Refusal> {
    let mut asked = json!({"onlyTouched": false});
    for field in ["revision", "repoURL", "branch", "base"] {
        if let Some(text) = params.get(field) {
            asked[field] = text.into();
        }
    }
    if let Some(text) = params.get("pull") {
        let number: u64 = text
            .parse()
            .map_err(|_| Refusal::Wrong(format!("pull={text:?} is not the number of a pull request")))?;
        asked["pull"] = number.into();
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_for_requests() {
        let get = Method::GET;
        for (method, what, query, expected) in [
            (
                &get,
                "usage",
                "workspace=root:acme",
                Ok("/clusters/root:acme/apis/gateway.fairway.dev/v1alpha1/counters"),
            ),
            (
                &get,
                "usage",
                "",
                Ok("/clusters/root/apis/gateway.fairway.dev/v1alpha1/counters"),
            ),
            (
                &get,
                "applications/plan",
                "workspace=root:acme&namespace=openshift-gitops&name=web&pull=3",
                Ok(
                    "/clusters/root:acme/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications/web/plan",
                ),
            ),
            (&get, "usage", "workspace=../x", Err("is not a path")),
            (&get, "usage", "workspace=root:a/b", Err("is not a path")),
            (
                &get,
                "applications/plan",
                "namespace=a&name=../b",
                Err("is not the name"),
            ),
            (
                &get,
                "applications/plan",
                "namespace=a&name=b&pull=x",
                Err("not the number"),
            ),
            (&get, "activity", "limit=x", Err("not a number")),
            (&get, "why", "kind=a/b&name=c", Err("is not a kind")),
            (&get, "why", "kind=Service&name=../c", Err("is not the name")),
        ] {
            match (call(method, what, query, None), expected) {
                (Ok(Call::One { path, .. }), Ok(expected)) => assert_eq!(path, expected),
                (Err(Refusal::Wrong(why)), Err(part)) => assert!(why.contains(part), "{why}"),
                (found, _) => panic!("{what}?{query}: {found:?}"),
            }
        }
        assert_eq!(
            call(&Method::POST, "usage", "", None),
            Err(Refusal::Method("GET"))
        );
        assert_eq!(call(&get, "secrets", "", None), Err(Refusal::Unknown));
        assert_eq!(
            call(&get, "activity", "limit=99999&workspace=root:acme", None),
            Ok(Call::Activity {
                workspace: "root:acme".to_owned(),
                limit: MAX_ENTRIES
            })
        );
        assert_eq!(
            call(&get, "why", "kind=Service&namespace=shop&name=web", None),
            Ok(Call::Why {
                workspace: "root".to_owned(),
                object: "Service/web".to_owned(),
                namespace: Some("shop".to_owned()),
            })
        );
        let asked = json!({"method": "GET", "url": "http://a/"});
        let Ok(Call::One { body, .. }) = call(&Method::POST, "gateway/explain", "", Some(asked.clone()))
        else {
            panic!("refused");
        };
        assert_eq!(body, Some(json!({"spec": asked})));
        assert!(call(&Method::POST, "gateway/explain", "", Some(json!(1))).is_err());
    }
}
