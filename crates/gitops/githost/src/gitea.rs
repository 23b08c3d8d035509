//! Gitea's REST API, version 1: what Backstage's `publish:gitea`, the `tea` client and scripts use of it.
//!
//! [`call`] finds who asks and for what; each family of endpoints is a module. [`shapes`] makes Gitea's JSON, [`land`] moves
//! branches under the same rules as a push. What is kept beside commits (pull requests, comments, statuses) lies as files in the repository's
//! own directory ([`records`]): it belongs to the repository, is saved and moved with it, and would be too much for objects. An
//! endpoint that is not here says so.

mod archive;
mod branches;
mod call;
mod commits;
mod contents;
mod hooks;
pub(crate) mod labels;
mod land;
pub mod proposals;
mod protections;
pub(crate) mod pulls;
pub(crate) mod records;
mod repos;
pub(crate) mod shapes;
mod statuses;
mod tokens;

use std::sync::Arc;

use http::{Method, Request, Response};

use crate::host::Host;
use crate::transport::Body;
use call::{Answer, Call, Problem};
pub use pulls::OpenPull;
pub(crate) use pulls::open as open_pulls;

/// The version of Gitea whose API this is.
const VERSION: &str = "1.22.0";

/// Answers a request below `/api/v1/`.
pub(crate) async fn serve(host: &Arc<Host>, path: &str, request: Request<Body>) -> Response<Body> {
    let call = match Call::read(host, path, request).await {
        Ok(call) => call,
        Err(problem) => return problem.response(host),
    };
    let answer = route(&call).await;
    match answer {
        Ok(answer) => answer.response(),
        Err(problem) => problem.response(host),
    }
}

async fn route(call: &Call) -> Result<Answer, Problem> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let method = call.method.clone();
    match (&method, path.as_slice()) {
        (&Method::GET, ["version"]) => Ok(Answer::ok(
            serde_json::json!({"version": format!("{VERSION}+fairway")}),
        )),
        (&Method::GET, ["user"]) => repos::user(call).await,
        (&Method::GET, ["users", name, "tokens"]) => tokens::list(call, name).await,
        (&Method::POST, ["users", name, "tokens"]) => tokens::create(call, name).await,
        (&Method::DELETE, ["users", name, "tokens", token]) => tokens::delete(call, name, token).await,
        (&Method::GET, ["users", name]) => repos::user_named(call, name).await,
        (&Method::GET, ["orgs", name]) => repos::organisation(call, name).await,
        (&Method::GET, ["user", "orgs"]) => repos::own_organisations(call).await,
        (&Method::GET, ["user", "repos"]) => repos::list_own(call).await,
        (&Method::GET, ["orgs" | "users", owner, "repos"]) => repos::list(call, owner).await,
        (&Method::POST, ["user", "repos"]) => repos::create_own(call).await,
        (&Method::POST, ["org" | "orgs", owner, "repos"]) => repos::create(call, owner).await,
        (&Method::POST, ["repos", "migrate"]) => repos::migrate(call).await,
        (_, ["repos", owner, name, rest @ ..]) => repository(call, owner, name, rest).await,
        _ => Err(Problem::unserved(call)),
    }
}

async fn repository(call: &Call, owner: &str, name: &str, rest: &[&str]) -> Result<Answer, Problem> {
    let slug = call.slug(owner, name)?;
    let method = call.method.clone();
    match (&method, rest) {
        (&Method::GET, []) => repos::get(call, &slug).await,
        (&Method::DELETE, []) => repos::delete(call, &slug).await,
        (&Method::PATCH, []) => repos::edit(call, &slug).await,
        (&Method::GET, ["branches"]) => branches::list(call, &slug).await,
        (&Method::POST, ["branches"]) => branches::create(call, &slug).await,
        (&Method::GET, ["branches", branch @ ..]) => branches::get(call, &slug, &branch.join("/")).await,
        (&Method::DELETE, ["branches", branch @ ..]) => {
            branches::delete(call, &slug, &branch.join("/")).await
        }
        (&Method::GET, ["tags"]) => branches::list_tags(call, &slug).await,
        (&Method::POST, ["tags"]) => branches::create_tag(call, &slug).await,
        (&Method::GET, ["tags", tag @ ..]) => branches::get_tag(call, &slug, &tag.join("/")).await,
        (&Method::DELETE, ["tags", tag @ ..]) => branches::delete_tag(call, &slug, &tag.join("/")).await,
        (&Method::GET, ["contents", path @ ..]) => contents::get(call, &slug, &path.join("/")).await,
        (&Method::POST, ["contents"]) => contents::change_many(call, &slug).await,
        (&Method::POST | &Method::PUT | &Method::DELETE, ["contents", path @ ..]) => {
            contents::change_one(call, &slug, &path.join("/")).await
        }
        (&Method::GET, ["raw", path @ ..]) => contents::raw(call, &slug, &path.join("/")).await,
        (&Method::GET, ["commits"]) => commits::list(call, &slug).await,
        (&Method::GET, ["git", "commits", revision]) => commits::get(call, &slug, revision).await,
        (&Method::GET, ["compare", range @ ..]) => commits::compare(call, &slug, &range.join("/")).await,
        (&Method::GET, ["pulls"]) => pulls::list(call, &slug).await,
        (&Method::POST, ["pulls"]) => pulls::create(call, &slug).await,
        (&Method::GET, ["pulls", number]) => pulls::get(call, &slug, number).await,
        (&Method::PATCH, ["pulls", number]) => pulls::edit(call, &slug, number).await,
        (&Method::GET, ["pulls", number, "commits"]) => pulls::commits(call, &slug, number).await,
        (&Method::GET, ["pulls", number, "files"]) => pulls::files(call, &slug, number).await,
        (&Method::GET, ["pulls", number, "merge"]) => pulls::is_merged(call, &slug, number).await,
        (&Method::POST, ["pulls", number, "merge"]) => pulls::merge(call, &slug, number).await,
        (&Method::GET, ["issues", number, "comments"]) => pulls::comments(call, &slug, number).await,
        (&Method::POST, ["issues", number, "comments"]) => pulls::comment(call, &slug, number).await,
        (_, ["labels", rest @ ..]) => label(call, &slug, rest).await,
        (&Method::GET, ["issues", number, "labels"]) => labels::of_pull(call, &slug, number).await,
        (&Method::POST | &Method::PUT | &Method::DELETE, ["issues", number, "labels"]) => {
            labels::change(call, &slug, number).await
        }
        (&Method::DELETE, ["issues", number, "labels", id]) => labels::remove(call, &slug, number, id).await,
        (_, ["branch_protections", rest @ ..]) => protection(call, &slug, rest).await,
        (&Method::GET, ["archive", name @ ..]) => archive::get(call, &slug, &name.join("/")).await,
        (_, ["hooks", rest @ ..]) => hook(call, &slug, rest).await,
        (&Method::POST, ["statuses", id]) => statuses::create(call, &slug, id).await,
        (&Method::GET, ["statuses", revision]) => statuses::list(call, &slug, revision).await,
        (&Method::GET, ["commits", revision @ .., "statuses"]) => {
            statuses::list(call, &slug, &revision.join("/")).await
        }
        (&Method::GET, ["commits", revision @ .., "status"]) => {
            statuses::combined(call, &slug, &revision.join("/")).await
        }
        _ => Err(Problem::unserved(call)),
    }
}

async fn label(call: &Call, slug: &crate::route::Slug, rest: &[&str]) -> Result<Answer, Problem> {
    let method = call.method.clone();
    match (&method, rest) {
        (&Method::GET, []) => labels::list(call, slug).await,
        (&Method::POST, []) => labels::create(call, slug).await,
        (&Method::GET, [id]) => labels::get(call, slug, id).await,
        (&Method::PATCH, [id]) => labels::edit(call, slug, id).await,
        (&Method::DELETE, [id]) => labels::delete(call, slug, id).await,
        _ => Err(Problem::unserved(call)),
    }
}

async fn hook(call: &Call, slug: &crate::route::Slug, rest: &[&str]) -> Result<Answer, Problem> {
    let method = call.method.clone();
    match (&method, rest) {
        (&Method::GET, []) => hooks::list(call, slug).await,
        (&Method::POST, []) => hooks::create(call, slug).await,
        (&Method::GET, [id]) => hooks::get(call, slug, id).await,
        (&Method::PATCH, [id]) => hooks::edit(call, slug, id).await,
        (&Method::DELETE, [id]) => hooks::delete(call, slug, id).await,
        (&Method::POST, [id, "tests"]) => hooks::test(call, slug, id).await,
        (&Method::GET, [id, "deliveries"]) => hooks::deliveries(call, slug, id).await,
        (&Method::GET, [id, "deliveries", delivery]) => hooks::delivery(call, slug, id, delivery).await,
        (&Method::POST, [id, "deliveries", delivery, "attempts"]) => {
            hooks::redeliver(call, slug, id, delivery).await
        }
        _ => Err(Problem::unserved(call)),
    }
}

async fn protection(call: &Call, slug: &crate::route::Slug, rest: &[&str]) -> Result<Answer, Problem> {
    let (method, name) = (call.method.clone(), rest.join("/"));
    match (&method, rest) {
        (&Method::GET, []) => protections::list(call, slug).await,
        (&Method::POST, []) => protections::create(call, slug).await,
        (&Method::GET, _) => protections::get(call, slug, &name).await,
        (&Method::PATCH, [_, ..]) => protections::edit(call, slug, &name).await,
        (&Method::DELETE, [_, ..]) => protections::delete(call, slug, &name).await,
        _ => Err(Problem::unserved(call)),
    }
}
