//! `v2/autocomplete/:provider/:resource`: what Backstage's pickers of repositories offer. The one provider is the Git host of this
//! installation, which has Gitea's API; it is asked in the name of whoever asks, so that the token for it that Backstage's clients send is
//! not needed.

use form_urlencoded::byte_serialize;
use http::{Method, Response};
use serde_json::{Value, json};

use super::answer::{self, Problem};
use super::{Body, Call};
use crate::ports::ForgeError;

/// The host's largest page.
const PAGE: usize = 50;
/// So many pages are read: nobody picks from more.
const PAGES: usize = 20;

/// What is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    Owners,
    /// Of an owner.
    Repositories,
    /// The same as `owner/name`.
    RepositoriesWithOwner,
    /// Of a repository.
    Branches,
}

impl Resource {
    fn parse(provider: &str, resource: &str) -> Result<Self, String> {
        if provider != "gitea" {
            return Err(format!(
                "Unsupported provider: {provider}. The Git host of this installation is asked for as gitea"
            ));
        }
        Ok(match resource {
            "owners" => Self::Owners,
            "repositories" => Self::Repositories,
            "repositoriesWithOwner" => Self::RepositoriesWithOwner,
            "branches" => Self::Branches,
            other => {
                return Err(format!(
                    "Invalid resource: {other}. There are owners, repositories, repositoriesWithOwner and branches"
                ));
            }
        })
    }
}

/// The list of the host that answers, without its page; an error if the context does not say of what.
fn path(resource: Resource, context: &Value, own: &str) -> Result<String, String> {
    let text = |key: &str| context[key].as_str().filter(|text| !text.is_empty());
    let part = |text: &str| {
        byte_serialize(text.as_bytes())
            .collect::<String>()
            .replace('+', "%20")
    };
    let owner = part(text("owner").unwrap_or(own));
    match resource {
        Resource::Branches => match text("repository").or_else(|| text("repo")) {
            Some(repository) => Ok(format!("repos/{owner}/{}/branches", part(repository))),
            None => Err("Missing repository context parameter".to_owned()),
        },
        _ => Ok(format!("users/{owner}/repos")),
    }
}

fn result(resource: Resource, item: &Value) -> Option<Value> {
    let key = match resource {
        Resource::RepositoriesWithOwner => "full_name",
        _ => "name",
    };
    let name = item[key].as_str()?;
    Some(json!({"id": name, "title": name}))
}

fn problem(error: &ForgeError) -> Problem {
    match error.code {
        403 => Problem::forbidden(&error.message),
        404 => Problem::not_found(&error.message),
        _ => Problem::input(&format!("the Git host does not say: {error}")),
    }
}

impl Call {
    pub(super) async fn autocomplete(
        &self,
        provider: &str,
        resource: &str,
    ) -> Result<Response<Body>, Problem> {
        let resource = Resource::parse(provider, resource).map_err(|why| Problem::input(&why))?;
        let forge = &self.world.options.forge;
        let own = forge
            .owner(&self.workspace)
            .await
            .map_err(|error| problem(&error))?;
        let mut results = Vec::new();
        if resource == Resource::Owners {
            results.push(json!({"id": own, "title": own}));
            return Ok(answer::json(200, &json!({ "results": results })));
        }
        let path = path(resource, &self.body["context"], &own).map_err(|why| Problem::input(&why))?;
        for page in 1..=PAGES {
            let path = format!("{path}?limit={PAGE}&page={page}");
            let found = forge
                .call(&self.workspace, &self.person, Method::GET, &path, Value::Null)
                .await
                .map_err(|error| problem(&error))?;
            let found = found.as_array().map_or(&[][..], Vec::as_slice);
            results.extend(found.iter().filter_map(|item| result(resource, item)));
            if found.len() < PAGE {
                break;
            }
        }
        Ok(answer::json(200, &json!({ "results": results })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_become_lists_of_the_host() {
        for (provider, resource, context, expected) in [
            (
                "gitea",
                "repositories",
                json!({"owner": "team"}),
                Ok("users/team/repos"),
            ),
            ("gitea", "repositories", json!({}), Ok("users/own/repos")),
            (
                "gitea",
                "repositoriesWithOwner",
                Value::Null,
                Ok("users/own/repos"),
            ),
            (
                "gitea",
                "branches",
                json!({"owner": "team", "repository": "web"}),
                Ok("repos/team/web/branches"),
            ),
            // A name does not lead elsewhere.
            (
                "gitea",
                "branches",
                json!({"owner": "a/b", "repository": "../x y?z"}),
                Ok("repos/a%2Fb/..%2Fx%20y%3Fz/branches"),
            ),
            (
                "gitea",
                "branches",
                json!({"owner": "team"}),
                Err("Missing repository"),
            ),
            ("gitea", "tags", json!({}), Err("Invalid resource: tags")),
            ("github", "owners", json!({}), Err("Unsupported provider: github")),
            ("", "owners", json!({}), Err("Unsupported provider: ")),
        ] {
            let found = Resource::parse(provider, resource).and_then(|it| path(it, &context, "own"));
            match expected {
                Ok(path) => assert_eq!(found.as_deref(), Ok(path), "{provider} {resource} {context}"),
                Err(why) => assert!(
                    found.unwrap_err().starts_with(why),
                    "{provider} {resource} {context}"
                ),
            }
        }
    }

    #[test]
    fn results_are_what_pickers_want() {
        let item = json!({"name": "web", "full_name": "team/web"});
        for (resource, expected) in [
            (Resource::Repositories, "web"),
            (Resource::RepositoriesWithOwner, "team/web"),
            (Resource::Branches, "web"),
        ] {
            let expected = json!({"id": expected, "title": expected});
            assert_eq!(result(resource, &item), Some(expected), "{resource:?}");
        }
        assert_eq!(result(Resource::Branches, &json!({})), None);
    }
}
