//! Users, organisations and repositories. An organisation is a workspace; a repository is a `Repository` object in it.

use fairway_controller::{Json, Reach};
use http::StatusCode;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

use super::call::{Answer, Call, Problem};
use super::shapes::{self, Permissions};
use crate::access::{Caller, Verb};
use crate::catalog::{self, Wanted};
use crate::host::Denial;
use crate::owner;
use crate::route::Slug;

/// `GET /user`
pub(super) async fn user(call: &Call) -> Result<Answer, Problem> {
    let (_, caller) = call.caller_at_home().await?;
    Ok(Answer::ok(shapes::caller(&caller)))
}

/// `GET /users/{name}`: an organisation, or the caller himself.
pub(super) async fn user_named(call: &Call, name: &str) -> Result<Answer, Problem> {
    if let Ok((_, caller)) = call.caller_at_home().await
        && caller.short_name() == name
    {
        return Ok(Answer::ok(shapes::caller(&caller)));
    }
    call.caller_in(name).await?;
    Ok(Answer::ok(shapes::user(name)))
}

/// `GET /orgs/{name}`
pub(super) async fn organisation(call: &Call, name: &str) -> Result<Answer, Problem> {
    call.caller_in(name).await?;
    Ok(Answer::ok(shapes::organisation(name)))
}

/// The name of the workspace that the caller's token is of.
async fn home(call: &Call) -> Result<(String, Caller), Problem> {
    let (home, caller) = call.caller_at_home().await?;
    let path = match home.as_str() {
        "root" => "root".to_owned(),
        _ => crate::reconcile::workspace_path(call.host.client_at(&home))
            .await
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?
            .ok_or_else(|| Problem::not_found("The workspace of the token"))?,
    };
    Ok((owner::of_workspace(&path), caller))
}

/// `GET /user/orgs`
pub(super) async fn own_organisations(call: &Call) -> Result<Answer, Problem> {
    let (owner, _) = home(call).await?;
    Ok(call.page_of(vec![shapes::organisation(&owner)]))
}

/// `GET /user/repos`
pub(super) async fn list_own(call: &Call) -> Result<Answer, Problem> {
    let (owner, caller) = home(call).await?;
    list_for(call, &owner, &caller).await
}

/// `GET /orgs/{owner}/repos`
pub(super) async fn list(call: &Call, owner: &str) -> Result<Answer, Problem> {
    let (_, caller) = call.caller_in(owner).await?;
    list_for(call, owner, &caller).await
}

async fn list_for(call: &Call, owner: &str, caller: &Caller) -> Result<Answer, Problem> {
    let workspace = owner::workspace_of(owner).ok_or_else(|| Problem::not_found("The organisation"))?;
    let sees_all = call.host.may(&workspace, caller, Verb::List, "").await?;
    let objects = catalog::api(call.host.client_at(&workspace));
    let objects = objects.list(&ListParams::default()).await?;
    let mut shown = Vec::new();
    for object in objects.items {
        let wanted = read(&object);
        let can_read = sees_all
            || !wanted.is_private
            || call.host.may(&workspace, caller, Verb::Get, &wanted.name).await?;
        if can_read {
            let slug = Slug {
                owner: owner.to_owned(),
                name: wanted.name.clone(),
            };
            shown.push(describe(call, &slug, &wanted, caller).await?);
        }
    }
    Ok(call.page_of(shown))
}

fn read(object: &Json) -> Wanted {
    Wanted::read(
        Reach::Every.workspace_of(&object.metadata).as_str(),
        &object.value,
    )
}

pub(super) async fn describe(
    call: &Call,
    slug: &Slug,
    wanted: &Wanted,
    caller: &Caller,
) -> Result<Value, Problem> {
    let workspace = owner::workspace_of(&slug.owner).ok_or_else(|| Problem::not_found("The organisation"))?;
    let repository = call.host.place().ensure(wanted).await?;
    let is_empty = repository.references("refs/heads/").await?.is_empty();
    let size = repository.disk_size().await?;
    let permissions = Permissions {
        admin: call
            .host
            .may(&workspace, caller, Verb::Delete, &slug.name)
            .await?,
        push: call
            .host
            .may(&workspace, caller, Verb::Update, &slug.name)
            .await?,
        pull: true,
    };
    Ok(shapes::repository(
        call.host.url(),
        slug,
        wanted,
        is_empty,
        size,
        permissions,
    ))
}

/// `GET /repos/{owner}/{name}`
pub(super) async fn get(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    Ok(Answer::ok(
        describe(call, slug, &opened.wanted, &opened.caller).await?,
    ))
}

/// `POST /user/repos`
pub(super) async fn create_own(call: &Call) -> Result<Answer, Problem> {
    let (owner, _) = home(call).await?;
    create(call, &owner).await
}

/// `POST /orgs/{owner}/repos`
pub(super) async fn create(call: &Call, owner: &str) -> Result<Answer, Problem> {
    let name = call.text("name").unwrap_or("");
    let mut spec = Map::new();
    spec.insert("private".to_owned(), call.flag("private").unwrap_or(false).into());
    for (field, target) in [
        ("description", "description"),
        ("default_branch", "defaultBranch"),
    ] {
        if let Some(text) = call.text(field).filter(|text| !text.is_empty()) {
            spec.insert(target.to_owned(), text.into());
        }
    }
    make(call, owner, name, spec).await
}

/// `POST /repos/migrate`: a mirror of another repository.
pub(super) async fn migrate(call: &Call) -> Result<Answer, Problem> {
    let url = call.text("clone_addr").unwrap_or("");
    let (url, password) = fairway_gitops_git::split_credentials(url);
    let has_password = password.is_some_and(|(_, word)| !word.is_empty());
    if has_password || call.text("auth_token").is_some() || call.text("auth_password").is_some() {
        let why = "credentials are kept in a Secret: make a Repository with spec.mirror.secretRef instead";
        return Err(Problem::wrong(why));
    }
    if call.flag("mirror") != Some(true) {
        let why = "only mirrors are made here (mirror: true); to take a repository over, push it";
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, why));
    }
    fairway_gitops_git::Remote::new(&url)?;
    let mut mirror = json!({"url": url});
    if let Some(interval) = call.text("mirror_interval").filter(|text| !text.is_empty()) {
        mirror["interval"] = interval.into();
    }
    let mut spec = Map::new();
    spec.insert("private".to_owned(), call.flag("private").unwrap_or(false).into());
    spec.insert("mirror".to_owned(), mirror);
    if let Some(text) = call.text("description") {
        spec.insert("description".to_owned(), text.into());
    }
    let owner = match call.text("repo_owner") {
        Some(owner) => owner.to_owned(),
        None => home(call).await?.0,
    };
    make(call, &owner, call.text("repo_name").unwrap_or(""), spec).await
}

async fn make(call: &Call, owner: &str, name: &str, spec: Map<String, Value>) -> Result<Answer, Problem> {
    let (workspace, caller) = call.caller_in(owner).await?;
    if !owner::is_repository_name(name) {
        let why = format!(
            "{name:?} is not a name for a repository: lower-case letters, digits, dashes and single dots, beginning and ending \
             with a letter or digit"
        );
        return Err(Problem::wrong(why));
    }
    if !call.host.may(&workspace, &caller, Verb::Create, name).await? {
        return Err(Denial::Forbidden.into());
    }
    let object = json!({
        "apiVersion": format!("{}/v1alpha1", catalog::GROUP), "kind": "Repository",
        "metadata": {"name": name}, "spec": spec,
    });
    let request = call.host.client_at(&workspace);
    let made = create_object(request, &object)
        .await
        .map_err(|problem| match problem.status {
            StatusCode::CONFLICT => Problem::new(
                StatusCode::CONFLICT,
                "The repository with the same name already exists.",
            ),
            _ => problem,
        })?;
    let slug = call.slug(owner, name)?;
    Ok(Answer::created(
        describe(call, &slug, &read(&made), &caller).await?,
    ))
}

/// Makes an object from JSON; `Json` can be read, but not written.
async fn create_object(client: kube::Client, object: &Value) -> Result<Json, Problem> {
    use kube::api::{Api, DynamicObject};
    let dynamic: DynamicObject =
        serde_json::from_value(object.clone()).map_err(|error| Problem::wrong(error.to_string()))?;
    let api: Api<DynamicObject> = Api::all_with(client, &catalog::resource());
    let made = api.create(&PostParams::default(), &dynamic).await?;
    let text = serde_json::to_value(&made).map_err(|error| Problem::wrong(error.to_string()))?;
    serde_json::from_value(text).map_err(|error| Problem::wrong(error.to_string()))
}

/// `DELETE /repos/{owner}/{name}`
pub(super) async fn delete(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Delete).await?;
    let workspace = owner::workspace_of(&slug.owner).ok_or_else(|| Problem::not_found("The organisation"))?;
    let api = catalog::api(call.host.client_at(&workspace));
    // The same object that the caller may delete, and no other of its name.
    let uid = opened.wanted.uid.clone();
    let parameters = DeleteParams::default().preconditions(kube::api::Preconditions {
        uid: Some(uid.clone()),
        resource_version: None,
    });
    api.delete(&slug.name, &parameters).await?;
    call.host
        .place()
        .remove(&opened.wanted.workspace, &slug.name, Some(&uid))
        .await?;
    Ok(Answer::nothing())
}

/// `PATCH /repos/{owner}/{name}`
pub(super) async fn edit(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let fields: Vec<&String> = call
        .body
        .as_object()
        .into_iter()
        .flat_map(|body| body.keys())
        .collect();
    let known = [
        "description",
        "private",
        "default_branch",
        "name",
        "website",
        "has_issues",
        "has_wiki",
        "has_pull_requests",
    ];
    if let Some(other) = fields.iter().find(|field| !known.contains(&field.as_str())) {
        return Err(Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("{other} cannot be changed here"),
        ));
    }
    if call.text("name").is_some_and(|name| name != slug.name) {
        return Err(Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            "repositories cannot be renamed",
        ));
    }
    let mut spec = Map::new();
    if let Some(text) = call.text("description") {
        spec.insert("description".to_owned(), text.into());
    }
    if let Some(private) = call.flag("private") {
        spec.insert("private".to_owned(), private.into());
    }
    if let Some(branch) = call.text("default_branch") {
        let name = fairway_gitops_git::RefName::branch(branch)?;
        opened.repository.resolve(name.as_str()).await?;
        spec.insert("defaultBranch".to_owned(), branch.into());
    }
    let workspace = owner::workspace_of(&slug.owner).ok_or_else(|| Problem::not_found("The organisation"))?;
    let api = catalog::api(call.host.client_at(&workspace));
    let patch = Patch::Merge(json!({"spec": spec}));
    let changed = api.patch(&slug.name, &PatchParams::default(), &patch).await?;
    let wanted = read(&changed);
    call.host.place().settle(&opened.repository, &wanted).await?;
    Ok(Answer::ok(describe(call, slug, &wanted, &opened.caller).await?))
}
