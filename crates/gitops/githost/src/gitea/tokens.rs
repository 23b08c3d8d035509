//! Access tokens: of a service account, for the Git host only, narrowed by scopes, and gone when their Secret is.
//!
//! A token is a JSON Web Token of the API server, bound to a Secret in the account's namespace. The Secret says what it may be
//! used for and does not hold it: who has lost it makes another one.

use fairway_api::identity::REQUESTED_BY;
use fairway_controller::error::is_already_exists;
use http::StatusCode;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use super::shapes;
use crate::access::{Caller, GIT_TOKEN, NAME, SCOPES};
use crate::hooks::message::hex;
use crate::scopes::{self, AUDIENCE, Area};

/// How long a token is good.
const LIFETIME: i64 = 365 * 24 * 3600;
/// Which Secrets are tokens of which account: a digest, because names of accounts are longer than labels may be.
const LABEL: &str = "fairway.dev/git-token-of";
const LAST_EIGHT: &str = "fairway.dev/token-last-eight";
/// The most tokens of an account.
const MAX_TOKENS: usize = 100;
const MAX_NAME: usize = 255;

/// The account that asks, and the way to its namespace.
struct Account {
    client: Client,
    namespace: String,
    name: String,
    caller: Caller,
}

fn digest(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hex(&digest.as_ref()[..16])
}

impl Account {
    async fn of(call: &Call, user: &str, is_write: bool) -> Result<Self, Problem> {
        let (home, caller) = call.caller_at_home().await?;
        if !scopes::allow(caller.user.as_ref(), Area::User, is_write) {
            return Err(super::call::out_of_scope(Area::User, is_write));
        }
        if caller.short_name() != user && caller.name() != user {
            let why = format!(
                "tokens of {user} are made and seen by {user} only; you are {}",
                caller.short_name()
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, why));
        }
        let parts: Vec<&str> = caller.name().split(':').collect();
        let ["system", "serviceaccount", namespace, name] = parts[..] else {
            let why = "tokens are those of service accounts; make one, grant it rights on repositories.fairway.dev, and use \
                       its token here";
            return Err(Problem::wrong(why));
        };
        Ok(Self {
            client: call.host.client_at(&home),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            caller: caller.clone(),
        })
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn label(&self) -> String {
        digest(&self.name)
    }

    async fn all(&self) -> Result<Vec<Secret>, Problem> {
        let mine = ListParams::default().labels(&format!("{LABEL}={}", self.label()));
        let mut found = self.secrets().list(&mine).await?.items;
        found.retain(|secret| secret.type_.as_deref() == Some(GIT_TOKEN));
        found.sort_by_key(|secret| secret.metadata.creation_timestamp.clone());
        Ok(found)
    }
}

fn note<'a>(secret: &'a Secret, name: &str) -> &'a str {
    let notes = secret.metadata.annotations.as_ref();
    notes.and_then(|notes| notes.get(name)).map_or("", String::as_str)
}

fn number(secret: &Secret) -> u64 {
    shapes::number_of(secret.metadata.uid.as_deref().unwrap_or(""))
}

fn shape(secret: &Secret, token: &str) -> Value {
    let created = secret.metadata.creation_timestamp.as_ref();
    let created = created.and_then(|time| serde_json::to_value(time).ok());
    json!({
        "id": number(secret), "name": note(secret, NAME), "sha1": token, "token_last_eight": note(secret, LAST_EIGHT),
        "scopes": note(secret, SCOPES).split(',').filter(|scope| !scope.is_empty()).collect::<Vec<_>>(),
        "created_at": created, "last_used_at": created,
    })
}

/// `GET users/{name}/tokens`
pub(super) async fn list(call: &Call, user: &str) -> Result<Answer, Problem> {
    let account = Account::of(call, user, false).await?;
    let shown = account
        .all()
        .await?
        .iter()
        .map(|secret| shape(secret, ""))
        .collect();
    Ok(call.page_of(shown))
}

/// `POST users/{name}/tokens`
pub(super) async fn create(call: &Call, user: &str) -> Result<Answer, Problem> {
    let account = Account::of(call, user, true).await?;
    let name = call.text("name").unwrap_or("").trim();
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(Problem::wrong(format!(
            "a token needs a name of at most {MAX_NAME} bytes"
        )));
    }
    let asked = call.body["scopes"].as_array().into_iter().flatten();
    let asked: Vec<String> = asked
        .filter_map(|scope| scope.as_str().map(str::to_owned))
        .collect();
    let wrong = |why: String| Problem::new(StatusCode::BAD_REQUEST, why);
    let granted = scopes::parse(&asked).map_err(wrong)?;
    if let Some(scope) = scopes::beyond(account.caller.user.as_ref(), &granted) {
        let why = format!("the scope {scope} goes beyond those of the token that you use");
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    if account.all().await?.len() >= MAX_TOKENS {
        return Err(wrong(format!(
            "an account has at most {MAX_TOKENS} tokens; delete some first"
        )));
    }
    let owner = Api::<ServiceAccount>::namespaced(account.client.clone(), &account.namespace)
        .get(&account.name)
        .await?;
    let secret = secret(&account, &owner, name, &granted);
    let made = account.secrets().create(&PostParams::default(), &secret).await;
    let made = made.map_err(|error| match is_already_exists(&error) {
        true => wrong("access token name has been used already".to_owned()),
        false => error.into(),
    })?;
    let object = made.metadata.name.clone().unwrap_or_default();
    match issue(&account, &made).await {
        Ok(token) => {
            let last: String = token.chars().skip(token.len().saturating_sub(8)).collect();
            let noted = json!({"metadata": {"annotations": {LAST_EIGHT: last}}});
            let noted = account
                .secrets()
                .patch(&object, &PatchParams::default(), &Patch::Merge(noted))
                .await?;
            Ok(Answer::created(shape(&noted, &token)))
        }
        Err(problem) => {
            let _ = account.secrets().delete(&object, &DeleteParams::default()).await;
            Err(problem)
        }
    }
}

fn secret(account: &Account, owner: &ServiceAccount, name: &str, scopes: &[String]) -> Secret {
    let own = |text: &str| text.to_owned();
    Secret {
        metadata: ObjectMeta {
            // The same name twice is the same object, so that the API server finds doubles.
            name: Some(format!(
                "git-token-{}",
                digest(&format!("{}\0{name}", account.name))
            )),
            labels: Some([(own(LABEL), account.label())].into()),
            annotations: Some([(own(NAME), own(name)), (own(SCOPES), scopes.join(","))].into()),
            owner_references: Some(vec![OwnerReference {
                api_version: own("v1"),
                kind: own("ServiceAccount"),
                name: account.name.clone(),
                uid: owner.metadata.uid.clone().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        type_: Some(own(GIT_TOKEN)),
        ..Secret::default()
    }
}

async fn issue(account: &Account, secret: &Secret) -> Result<String, Problem> {
    // Who is here by a token that ends with a user gets none that outlives it.
    let extra = account.caller.user.as_ref().and_then(|user| user.extra.as_ref());
    let requester = extra.and_then(|extra| extra.get(REQUESTED_BY)?.first());
    let request = TokenRequest {
        metadata: ObjectMeta {
            annotations: requester.map(|it| [(REQUESTED_BY.to_owned(), it.clone())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(TokenRequestSpec {
            audiences: Some(vec![AUDIENCE.to_owned()]),
            expiration_seconds: Some(LIFETIME),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Secret".to_owned()),
                name: secret.metadata.name.clone(),
                uid: secret.metadata.uid.clone(),
            }),
        }),
        status: None,
    };
    let issued = Api::<ServiceAccount>::namespaced(account.client.clone(), &account.namespace)
        .create_token_request(&account.name, &PostParams::default(), &request)
        .await?;
    let token = issued.status.and_then(|status| status.token).unwrap_or_default();
    match token.is_empty() {
        false => Ok(token),
        true => Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the API server gave no token",
        )),
    }
}

/// `DELETE users/{name}/tokens/{token}`: by its number or its name.
pub(super) async fn delete(call: &Call, user: &str, token: &str) -> Result<Answer, Problem> {
    let account = Account::of(call, user, true).await?;
    let all = account.all().await?;
    let found = all
        .iter()
        .find(|secret| number(secret).to_string() == token)
        .or_else(|| all.iter().find(|secret| note(secret, NAME) == token));
    let found = found.ok_or_else(|| Problem::not_found("The token"))?;
    let name = found.metadata.name.as_deref().unwrap_or("");
    account.secrets().delete(name, &DeleteParams::default()).await?;
    Ok(Answer::nothing())
}
