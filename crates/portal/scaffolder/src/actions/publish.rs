//! `publish:gitea` and `publish:gitea:pull-request`: the working tree into the Git host of this installation, as the user.
//!
//! Before anything is written, the files are looked through for what must not reach Git, and the objects that they declare are
//! weighed against the quotas of their namespaces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::fairway::{REPOSITORY, VOYAGE_ANNOTATION};
use fairway_portal_template::files::{Files, clean};
use fairway_portal_template::leak;
use fairway_portal_template::names::RepoUrl;
use fairway_portal_template::run::Made;
use http::Method;
use serde_json::{Value, json};

use crate::deployed::{self, Deployed};
use crate::drive::{Job, Mode, StepError};
use crate::dry_run::Published;
use crate::ports::Hosted;
use crate::quota;
use crate::who::collection;

/// The branch of a new repository.
const BRANCH: &str = "main";

/// The repository that the input means: one of the run's own workspace.
async fn wanted(job: &Job<'_>) -> Result<Hosted, StepError> {
    let url = job.required("repoUrl")?;
    let parsed = RepoUrl::parse(&url)?;
    let forge = &job.world.options.forge;
    let own = forge
        .owner(&job.voyage.workspace)
        .await
        .map_err(|error| error.message)?;
    let address = forge.url();
    let host = address.trim_start_matches("https://");
    // Templates that are to work on every installation say `fairway`.
    let is_own_host = parsed.host == "fairway"
        || parsed.host == host
        || Some(parsed.host.as_str()) == host.split(':').next();
    if !is_own_host {
        return Err(StepError::Failed(format!(
            "{} is not the Git host of this installation, which is {host}; repositories elsewhere are not published to",
            parsed.host
        )));
    }
    let owner = parsed.owner.clone().unwrap_or_else(|| own.clone());
    match owner == own {
        true => Ok(Hosted {
            owner,
            name: parsed.repo,
        }),
        false => Err(StepError::Failed(format!(
            "repositories of {owner:?} belong to another workspace; here they belong to {own:?}"
        ))),
    }
}

/// The files to publish, looked through.
fn looked_through(job: &Job<'_>) -> Result<Files, StepError> {
    let files = job
        .files
        .subtree(job.text("sourcePath").unwrap_or(""))
        .map_err(|error| error.to_string())?;
    if files.is_empty() {
        return Err(StepError::failed(
            "there is nothing to publish: the working tree is empty",
        ));
    }
    let leaks = leak::leaks(&files, job.secrets);
    match leaks.is_empty() {
        true => Ok(files),
        false => {
            let said: Vec<String> = leaks.iter().map(ToString::to_string).collect();
            Err(StepError::Failed(format!(
                "this must not reach Git: {}. Keep it in a Secret of the cluster",
                said.join("; ")
            )))
        }
    }
}

/// Where a file is that is put below a directory.
fn place(target: &str, path: &str) -> String {
    match target.is_empty() {
        true => path.to_owned(),
        false => format!("{target}/{path}"),
    }
}

fn operations(files: &Files, target: &str) -> Value {
    let each = files.iter().map(|(path, file)| {
        json!({"operation": "upload", "path": place(target, path), "content": STANDARD.encode(&file.content)})
    });
    each.collect()
}

pub(super) async fn repository(job: &mut Job<'_>) -> Result<Value, StepError> {
    if job.flag("signCommit") {
        return Err(StepError::failed(
            "input.signCommit is true, and commits are not signed here; take it out",
        ));
    }
    let repository = wanted(job).await?;
    let files = looked_through(job)?;
    let branch = job.text("defaultBranch").unwrap_or(BRANCH).to_owned();
    let message = job
        .text("gitCommitMessage")
        .unwrap_or("initial commit")
        .to_owned();
    let address = format!("{}/{repository}", job.world.options.forge.url());
    let output = json!({
        "remoteUrl": format!("{address}.git"), "repoContentsUrl": format!("{address}/src/branch/{branch}"),
    });
    let clone = format!("{address}.git");
    let deployed = deployed::of(job, &files, &clone, &output).await;
    quota::reserve(job, &files, &deployed).await?;
    if job.mode == Mode::Dry {
        let mut is_again = false;
        if let Some(foreseen) = job.dry.as_deref_mut() {
            foreseen.repository(&clone, &files, deployed);
            let hosted = foreseen.hosted(&repository.to_string());
            is_again = std::mem::replace(&mut hosted.is_new, true);
            hosted.branches.push(branch);
        }
        let path = format!("{}/{}", collection(REPOSITORY, ""), repository.name);
        if is_again || job.requests().get(&path).await?.is_some() {
            return Err(StepError::Failed(format!(
                "the repository {repository} exists already"
            )));
        }
        return Ok(output);
    }
    make(job, &repository, &branch).await?;
    let hash = commit(job, &repository, &branch, &message, &files).await?;
    job.log(&format!("{address} has {} files, commit {hash}", files.len()));
    let mut output = output;
    output["commitHash"] = hash.into();
    Ok(output)
}

/// Makes the Repository, unless this run has made it already.
async fn make(job: &mut Job<'_>, repository: &Hosted, branch: &str) -> Result<(), StepError> {
    let path = format!("{}/{}", collection(REPOSITORY, ""), repository.name);
    let is_private = job.text("repoVisibility") != Some("public");
    let object = json!({
        "apiVersion": REPOSITORY.api_version(), "kind": REPOSITORY.kind,
        "metadata": {"name": repository.name, "annotations": {VOYAGE_ANNOTATION: job.voyage.uid}},
        "spec": {
            "private": is_private, "defaultBranch": branch, "description": job.text("description").unwrap_or(""),
        },
    });
    let requests = job.requests();
    let known = requests.get(&path).await?;
    let is_ours =
        |object: &Value| object["metadata"]["annotations"][VOYAGE_ANNOTATION] == job.voyage.uid.as_str();
    match known {
        Some(known) if is_ours(&known) => Ok(()),
        Some(_) => Err(StepError::Failed(format!(
            "the repository {repository} exists already; choose another name"
        ))),
        None => {
            job.will_make(Made {
                kind: "object".to_owned(),
                reference: json!({"path": path}),
                title: format!("repository {repository}"),
                ..Made::default()
            })
            .await?;
            match requests.create(&collection(REPOSITORY, ""), &object).await? {
                true => Ok(()),
                false => Err(StepError::Failed(format!(
                    "the repository {repository} exists already; choose another name"
                ))),
            }
        }
    }
}

/// Commits files to a branch, unless this step has done so already.
async fn commit(
    job: &mut Job<'_>,
    repository: &Hosted,
    branch: &str,
    message: &str,
    files: &Files,
) -> Result<String, StepError> {
    let (forge, workspace, trailer) = (&job.world.options.forge, job.workspace(), job.trailer());
    let escaped: String = form_urlencoded::byte_serialize(branch.as_bytes()).collect();
    let place = format!("repos/{repository}/branches/{escaped}");
    if let Some(known) = branch_at(job, &place).await? {
        let said = known["commit"]["message"].as_str().unwrap_or("");
        if said.contains(&trailer) {
            return Ok(known["commit"]["id"].as_str().unwrap_or("").to_owned());
        }
    }
    let body = json!({
        "branch": branch, "message": format!("{message}\n\n{trailer}\n"), "files": operations(files, ""),
        "author": author(job.text("gitAuthorName"), job.text("gitAuthorEmail"), job.person.short_name()),
    });
    let place = format!("repos/{repository}/contents");
    let made = forge
        .call(&workspace, job.person, Method::POST, &place, body)
        .await;
    let made = made.map_err(|error| format!("the files cannot be committed to {repository}: {error}"))?;
    Ok(made["commit"]["sha"].as_str().unwrap_or("").to_owned())
}

/// Whom a commit names as its author: who started the run, unless the template says otherwise. Who committed it the host knows itself.
fn author(name: Option<&str>, email: Option<&str>, own: &str) -> Value {
    let mut author = json!({"name": name.unwrap_or(own)});
    if let Some(email) = email {
        author["email"] = email.into();
    }
    author
}

/// A branch of the Git host, if there is one. What cannot be known is an error: a branch that is taken for absent would be taken for
/// this run's own later.
async fn branch_at(job: &Job<'_>, place: &str) -> Result<Option<Value>, StepError> {
    let (forge, workspace) = (&job.world.options.forge, job.workspace());
    let asked = forge
        .call(&workspace, job.person, Method::GET, place, Value::Null)
        .await;
    match asked {
        Ok(known) => Ok(Some(known)),
        Err(error) if error.code == 404 => Ok(None),
        Err(error) => Err(StepError::Failed(format!(
            "whether there is such a branch cannot be found out: {error}"
        ))),
    }
}

pub(super) async fn pull_request(job: &mut Job<'_>) -> Result<Value, StepError> {
    let repository = wanted(job).await?;
    let files = looked_through(job)?;
    let (branch, title) = (job.required("branchName")?, job.required("title")?);
    let base = job.text("targetBranchName").unwrap_or(BRANCH).to_owned();
    let target = clean(job.text("targetPath").unwrap_or("")).map_err(|error| error.to_string())?;
    quota::reserve(job, &files, &Deployed::default()).await?;
    if job.mode == Mode::Dry {
        return proposed(job, &repository, &files, (&base, &branch, &target)).await;
    }
    let (forge, workspace, trailer) = (&job.world.options.forge, job.workspace(), job.trailer());
    let person = job.person;
    let call = |method: Method, path: String, body: Value| {
        let (forge, workspace) = (forge.clone(), workspace.clone());
        async move { forge.call(&workspace, person, method, &path, body).await }
    };
    // A name of a branch is the author's; whether it is one is judged by the host, which must see it as one part of the path.
    let escaped: String = form_urlencoded::byte_serialize(branch.as_bytes()).collect();
    let place = format!("repos/{repository}/branches/{escaped}");
    let known = branch_at(job, &place).await?;
    let is_ours = known.as_ref().is_some_and(|known| {
        known["commit"]["message"]
            .as_str()
            .unwrap_or("")
            .contains(&trailer)
    });
    if !is_ours {
        if known.is_some() {
            return Err(StepError::Failed(format!(
                "{repository} has a branch {branch} already"
            )));
        }
        job.will_make(Made {
            kind: "call".to_owned(),
            reference: json!({"method": "DELETE", "path": place}),
            title: format!("branch {branch} of {repository}"),
            ..Made::default()
        })
        .await?;
        let body = json!({
            "branch": base, "new_branch": branch, "message": format!("{title}\n\n{trailer}\n"), "files": operations(&files, &target),
        });
        let made = call(Method::POST, format!("repos/{repository}/contents"), body).await;
        made.map_err(|error| format!("the files cannot be committed to {repository}: {error}"))?;
    }
    let open = call(
        Method::GET,
        format!("repos/{repository}/pulls?state=open&limit=50"),
        Value::Null,
    )
    .await;
    let same = |pull: &&Value| pull["head"]["ref"] == branch.as_str() && pull["base"]["ref"] == base.as_str();
    let known = open
        .ok()
        .and_then(|all| all.as_array()?.iter().find(same).cloned());
    let pull = match known {
        Some(pull) => pull,
        None => {
            let body = json!({
                "base": base, "head": branch, "title": title, "body": job.text("description").unwrap_or(""),
            });
            let made = call(Method::POST, format!("repos/{repository}/pulls"), body).await;
            made.map_err(|error| format!("the pull request cannot be opened: {error}"))?
        }
    };
    Ok(opened(&pull["html_url"], &pull["number"], &base))
}

/// What the action gives. The second name is that of the actions for other hosts.
fn opened(url: &Value, number: &Value, base: &str) -> Value {
    json!({"pullRequestUrl": url, "remoteUrl": url, "pullRequestNumber": number, "targetBranchName": base})
}

/// What a pull request would be: the same questions to the Git host as for a real one, and its next number.
async fn proposed(
    job: &mut Job<'_>,
    repository: &Hosted,
    files: &Files,
    (base, branch, target): (&str, &str, &str),
) -> Result<Value, StepError> {
    let slug = repository.to_string();
    let mut published = Published::default();
    if let Some(foreseen) = job.dry.as_deref_mut() {
        foreseen.repository(
            &format!("{slug} (branch {branch})"),
            &below(files, target)?,
            Deployed::default(),
        );
        published = foreseen.hosted(&slug).clone();
    }
    let mut last = 0;
    let mut branches = published.branches.clone();
    if !published.is_new {
        for name in [base, branch] {
            let escaped: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
            if branch_at(job, &format!("repos/{slug}/branches/{escaped}"))
                .await?
                .is_some()
            {
                branches.push(name.to_owned());
            }
        }
        let (forge, workspace) = (&job.world.options.forge, job.workspace());
        let path = format!("repos/{slug}/pulls?state=all&limit=1");
        let newest = forge
            .call(&workspace, job.person, Method::GET, &path, Value::Null)
            .await;
        let newest =
            newest.map_err(|error| format!("the files cannot be committed to {repository}: {error}"))?;
        last = newest[0]["number"].as_u64().unwrap_or(0);
    }
    let has = |name: &str| branches.iter().any(|known| known == name);
    if has(branch) {
        return Err(StepError::Failed(format!(
            "{repository} has a branch {branch} already"
        )));
    }
    if !has(base) {
        return Err(StepError::Failed(format!(
            "the files cannot be committed to {repository}: it has no branch {base} to which they could be proposed"
        )));
    }
    if let Some(foreseen) = job.dry.as_deref_mut() {
        let hosted = foreseen.hosted(&slug);
        hosted.branches.push(branch.to_owned());
        hosted.pulls += 1;
    }
    let number = last + published.pulls + 1;
    let url = format!("{}/{slug}/pulls/{number}", job.world.options.forge.url());
    Ok(opened(&url.into(), &number.into(), base))
}

/// Files as they are below a directory of the repository.
fn below(files: &Files, target: &str) -> Result<Files, StepError> {
    let mut moved = Files::default();
    for (path, file) in files.iter() {
        moved
            .write(&place(target, path), file.clone())
            .map_err(|error| error.to_string())?;
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use fairway_portal_template::files::File;

    use super::*;

    #[test]
    fn files_are_foreseen_where_they_are_committed() {
        let mut files = Files::default();
        files.write("a/b.txt", File::new(*b"x")).unwrap();
        for (target, expected) in [("", "a/b.txt"), ("deep/er", "deep/er/a/b.txt")] {
            let moved = below(&files, target).unwrap();
            let foreseen: Vec<&str> = moved.iter().map(|(path, _)| path).collect();
            let committed = operations(&files, target);
            assert_eq!(
                (foreseen, &committed[0]["path"]),
                (vec![expected], &json!(expected))
            );
        }
    }

    #[test]
    fn a_commit_names_whom_the_template_names() {
        for (name, email, expected) in [
            (None, None, json!({"name": "ann"})),
            (Some("Robot"), None, json!({"name": "Robot"})),
            (
                None,
                Some("r@example.com"),
                json!({"name": "ann", "email": "r@example.com"}),
            ),
            (
                Some("Robot"),
                Some("r@example.com"),
                json!({"name": "Robot", "email": "r@example.com"}),
            ),
        ] {
            assert_eq!(author(name, email, "ann"), expected);
        }
    }
}
