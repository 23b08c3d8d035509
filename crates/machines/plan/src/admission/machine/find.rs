//! The size and the taste that a machine names: what it remembered of them when it first used them, else as they are now.

use fairway_admission::{Place, Request, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::{not_found, text};
use crate::view::{self, InstancetypeSpec, PreferenceSpec};

const GROUP: &str = "instancetype.kubevirt.io";
const REVISIONS: Resource = Resource::new("apps", "controllerrevisions");
/// Which object a revision remembers.
const OBJECT_LABEL: &str = "instancetype.kubevirt.io/object-name";

/// One of both.
struct Matcher {
    /// Field of the machine's spec.
    field: &'static str,
    /// Field of its status.
    reference: &'static str,
    word: &'static str,
    own: Resource,
    singular: &'static str,
    everybodys: Resource,
    everybodys_singular: &'static str,
}

const SIZE: Matcher = Matcher {
    field: "instancetype",
    reference: "instancetypeRef",
    word: "InstancetypeMatcher",
    own: Resource::new(GROUP, "virtualmachineinstancetypes"),
    singular: "virtualmachineinstancetype",
    everybodys: Resource::new(GROUP, "virtualmachineclusterinstancetypes"),
    everybodys_singular: "virtualmachineclusterinstancetype",
};
const TASTE: Matcher = Matcher {
    field: "preference",
    reference: "preferenceRef",
    word: "PreferenceMatcher",
    own: Resource::new(GROUP, "virtualmachinepreferences"),
    singular: "virtualmachinepreference",
    everybodys: Resource::new(GROUP, "virtualmachineclusterpreferences"),
    everybodys_singular: "virtualmachineclusterpreference",
};

/// The size that a machine names.
pub(super) fn size(request: &Request<'_>, vm: &Value) -> Result<Option<InstancetypeSpec>, String> {
    found(&SIZE, request, vm)
}

/// The taste that a machine names.
pub(super) fn preference(request: &Request<'_>, vm: &Value) -> Result<Option<PreferenceSpec>, String> {
    found(&TASTE, request, vm)
}

fn found<T: DeserializeOwned>(
    matcher: &Matcher,
    request: &Request<'_>,
    vm: &Value,
) -> Result<Option<T>, String> {
    let wanted = &vm["spec"][matcher.field];
    if !wanted.is_object() {
        return Ok(None);
    }
    let spec = match remembered(matcher, request, vm)? {
        Some(spec) => spec,
        None => current(matcher, request, wanted)?,
    };
    let spec = view::read(matcher.word, &spec).map_err(|error| error.to_string())?;
    Ok(Some(spec))
}

/// What a revision kept. The one that the spec names comes before the one that the status knows of.
fn remembered(matcher: &Matcher, request: &Request<'_>, vm: &Value) -> Result<Option<Value>, String> {
    let wanted = &vm["spec"][matcher.field];
    let get = |name: &str| {
        let found = request.world.get(Place::Here, REVISIONS, request.namespace, name);
        found.ok_or_else(|| not_found(REVISIONS, name))
    };
    let named = text(wanted, "/revisionName");
    if !named.is_empty() {
        return Ok(Some(get(named)?["data"]["spec"].clone()));
    }
    let known = &vm["status"][matcher.reference]["controllerRevisionRef"];
    let known = text(known, "/name");
    if known.is_empty() {
        return Ok(None);
    }
    let revision = get(known)?;
    let is_it = revision["metadata"]["labels"][OBJECT_LABEL] == wanted["name"];
    Ok(is_it.then(|| revision["data"]["spec"].clone()))
}

fn current(matcher: &Matcher, request: &Request<'_>, wanted: &Value) -> Result<Value, String> {
    let (kind, name) = (text(wanted, "/kind"), text(wanted, "/name"));
    let lower = kind.to_lowercase();
    let (resource, namespace) = match lower.as_str() {
        word if word == matcher.singular || word == matcher.own.plural => (matcher.own, request.namespace),
        word if word.is_empty()
            || word == matcher.everybodys_singular
            || word == matcher.everybodys.plural =>
        {
            (matcher.everybodys, "")
        }
        _ => return Err(format!("got unexpected kind in {}: {kind}", matcher.word)),
    };
    let object = request.world.get(Place::Here, resource, namespace, name);
    object
        .map(|it| it["spec"].clone())
        .ok_or_else(|| not_found(resource, name))
}
