//! `serviceaccounts/token`: a token for an account, bound and with an end.

use fairway_kernel_tenancy::names::extra;
use serde_json::{Value, json};

use super::other;
use crate::authn::token::{DEFAULT_LIFETIME, Grant, LIFETIMES};
use crate::behaviour::check_type;
use crate::chance::rfc3339;
use crate::rest::call::{Answer, Call, meta};
use crate::rest::present;
use crate::status::{About, ApiError};

/// Issues a token as a `TokenRequest` asks for it.
pub(super) async fn create(call: &Call<'_>, body: &[u8]) -> Answer {
    let mut request = call.parse_body(body)?.value;
    check_type("io.k8s.api.authentication.v1.TokenRequest", &mut request)?;
    check_identity(call, &request)?;
    let account = call.existing(&call.path.name).await?;
    let account = present::value(&call.def, &account)?;
    let spec = request["spec"].clone();
    let lifetime = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_LIFETIME);
    if !LIFETIMES.contains(&lifetime) {
        let why = if lifetime < *LIFETIMES.start() {
            "may not specify a duration less than 10 minutes"
        } else {
            "may not specify a duration larger than 2^32 seconds"
        };
        return Err(ApiError::invalid(
            About {
                group: "authentication.k8s.io",
                resource: "TokenRequest",
                name: "",
            },
            &[fairway_kernel_schema::field::FieldError::invalid(
                &fairway_kernel_schema::field::Path::new("spec").child("expirationSeconds"),
                lifetime,
                why,
            )],
        ));
    }
    let audiences: Vec<String> = spec["audiences"]
        .as_array()
        .map(|a| a.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    let bound = bound_object(call, &spec["boundObjectRef"])?;
    let requester = requester(call, &request);
    let tokens = &call.kernel.tokens;
    let id = call.kernel.random.uuid();
    let now = call.kernel.clock.unix();
    let token = tokens
        .issue(&Grant {
            cluster: call.cluster,
            namespace: call.namespace(),
            account: &call.path.name,
            uid: meta(&account, "uid"),
            audiences: audiences.clone(),
            now,
            lifetime,
            bound: bound
                .as_ref()
                .map(|(kind, name, uid)| (kind.as_str(), name.as_str(), uid.as_str())),
            requester: requester.as_deref(),
            id: &id,
        })
        .map_err(ApiError::internal)?;
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["kind"] = "TokenRequest".into();
    request["metadata"] = json!({
        "name": call.path.name, "namespace": call.namespace(), "creationTimestamp": call.now,
    });
    request["spec"]["expirationSeconds"] = lifetime.into();
    request["spec"]["audiences"] = if audiences.is_empty() {
        json!([tokens.issuer()])
    } else {
        json!(audiences)
    };
    request["spec"]["boundObjectRef"] = spec["boundObjectRef"].clone();
    request["status"] = json!({"token": token, "expirationTimestamp": rfc3339(now + lifetime)});
    other(call, 201, &request)
}

/// Whom the token stands and falls with: the user who asks, or whom he has asked to ask. Naming somebody else can only shorten its life.
fn requester(call: &Call<'_>, request: &Value) -> Option<String> {
    let own = call.kernel.guests.bond(call.user);
    own.or_else(|| {
        let named = request["metadata"]["annotations"][extra::REQUESTED_BY].as_str();
        named.filter(|it| !it.is_empty()).map(str::to_owned)
    })
}

/// A request may say for whom it is, and must then be right.
fn check_identity(call: &Call<'_>, request: &Value) -> Result<(), ApiError> {
    let kind = request["kind"].as_str().unwrap_or("TokenRequest");
    if kind != "TokenRequest" {
        let (_, version) = group_of(request["apiVersion"].as_str().unwrap_or("v1"));
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a TokenRequest: converting ({version}.{kind}) to \
             (authentication.TokenRequest): unknown conversion"
        )));
    }
    let name = meta(request, "name");
    if !name.is_empty() && name != call.path.name {
        let path = fairway_kernel_schema::field::Path::new("metadata").child("name");
        let error = fairway_kernel_schema::field::FieldError::invalid(
            &path,
            name,
            "must match the service account name if specified",
        );
        let about = About {
            group: "authentication.k8s.io",
            resource: "TokenRequest",
            name: &call.path.name,
        };
        return Err(ApiError::invalid(about, &[error]));
    }
    let namespace = meta(request, "namespace");
    if !namespace.is_empty() && namespace != call.namespace() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn group_of(api_version: &str) -> (&str, &str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}

/// Kind, name and UID of the object that the token shall live and die with.
fn bound_object(call: &Call<'_>, reference: &Value) -> Result<Option<(String, String, String)>, ApiError> {
    if !reference.is_object() {
        return Ok(None);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or("").to_owned();
    let (kind, name, uid) = (text("kind"), text("name"), text("uid"));
    let (resource, namespace) = match (kind.as_str(), text("apiVersion").as_str()) {
        ("Pod", "v1" | "") => ("pods", call.namespace()),
        ("Secret", "v1" | "") => ("secrets", call.namespace()),
        ("Node", "v1" | "") => ("nodes", ""),
        _ => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {}/{}, Kind={kind}",
                group_of(&text("apiVersion")).0,
                group_of(&text("apiVersion")).1
            )));
        }
    };
    let about = About {
        group: "",
        resource,
        name: &name,
    };
    let found = call
        .kernel
        .storage
        .cache
        .built_in("", resource, call.cluster, namespace, &name)
        .ok_or_else(|| ApiError::not_found(about))?
        .value()?;
    if !uid.is_empty() && uid != meta(&found, "uid") {
        return Err(ApiError::conflict(
            about,
            format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            ),
        ));
    }
    let uid = meta(&found, "uid").to_owned();
    Ok(Some((kind, name, uid)))
}
