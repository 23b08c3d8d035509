//! Where objects are in the API, and small looks into them.

use fairway_api::Kind;
use fairway_api::kubevirt::{CDI_GROUP, INSTANCETYPE_GROUP};
use fairway_controller::{Failure, Requests};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};

/// In whose name fields are written: upstream's.
pub(crate) const MANAGER: &str = "virt-controller";
/// Whose events they are.
pub(crate) const COMPONENT: &str = "virtualmachine-controller";
/// Whom an object was made for.
pub(crate) const CREATED_BY: &str = "kubevirt.io/created-by";

const fn sized(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: INSTANCETYPE_GROUP,
        version: "v1beta1",
        kind,
        plural,
    }
}

/// The data importer as a whole.
pub(crate) const DATA_IMPORTER: Kind = Kind {
    group: CDI_GROUP,
    version: "v1beta1",
    kind: "CDI",
    plural: "cdis",
};
/// A size of a namespace.
pub(crate) const INSTANCETYPE: Kind = sized("VirtualMachineInstancetype", "virtualmachineinstancetypes");
/// A size for everybody.
pub(crate) const CLUSTER_INSTANCETYPE: Kind = sized(
    "VirtualMachineClusterInstancetype",
    "virtualmachineclusterinstancetypes",
);
/// A taste of a namespace.
pub(crate) const PREFERENCE: Kind = sized("VirtualMachinePreference", "virtualmachinepreferences");
/// A taste for everybody.
pub(crate) const CLUSTER_PREFERENCE: Kind = sized(
    "VirtualMachineClusterPreference",
    "virtualmachineclusterpreferences",
);

/// All objects of a kind in a namespace.
pub(crate) fn collection(kind: &Kind, namespace: &str) -> String {
    format!(
        "/apis/{}/{}/namespaces/{namespace}/{}",
        kind.group, kind.version, kind.plural
    )
}

/// An object of a namespace.
pub(crate) fn path(kind: &Kind, namespace: &str, name: &str) -> String {
    format!("{}/{name}", collection(kind, namespace))
}

/// All objects of a kind, wherever they are.
pub(crate) fn everywhere(kind: &Kind) -> String {
    format!("/apis/{}/{}/{}", kind.group, kind.version, kind.plural)
}

/// A claim.
pub(crate) fn claim(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
}

/// Revisions of a namespace.
pub(crate) fn revisions(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions")
}

/// The same path, written to in our name.
pub(crate) fn ours(path: &str) -> String {
    format!("{path}?fieldManager={MANAGER}")
}

/// Whether a text that somebody wrote may stand in a path.
pub(crate) fn is_name(name: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    (1..=253).contains(&name.len()) && name.bytes().all(sound) && !name.contains("..")
}

/// Reads an object that somebody named; what is no name names nothing.
pub(crate) async fn read(requests: &Requests, path: &str) -> Result<Option<Value>, Failure> {
    match path.rsplit('/').next().is_some_and(is_name) {
        true => requests.get(path).await,
        false => Ok(None),
    }
}

/// A text in an object; empty if it is not there.
pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The items of a list in an object.
pub(crate) fn items<'v>(object: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// The one that acts on an object.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").find(|it| it["controller"] == true)
}

/// Makes an object belong to the one that acts on it.
pub(crate) fn owner(kind: &Kind, object: &Value) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Whether an object is being deleted.
pub(crate) fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether an object has a finalizer.
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    items(object, "/metadata/finalizers").any(|it| it == finalizer)
}

/// A merge patch that takes finalizers away from the object that was read; nothing if it has none of them.
pub(crate) fn without_finalizers(object: &Value, finalizers: &[&str]) -> Option<Value> {
    let all: Vec<&Value> = items(object, "/metadata/finalizers").collect();
    let taken = |it: &&Value| it.as_str().is_some_and(|it| finalizers.contains(&it));
    let left: Vec<&Value> = all.iter().copied().filter(|it| !taken(it)).collect();
    (left.len() < all.len()).then(|| json!({"metadata": locked(object, json!({"finalizers": left}))}))
}

/// The metadata of a patch that fails if the object has changed since it was read.
pub(crate) fn locked(object: &Value, mut metadata: Value) -> Value {
    metadata["uid"] = object["metadata"]["uid"].clone();
    metadata["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    metadata
}

/// What events are about.
pub(crate) fn about(kind: &Kind, object: &Value) -> ObjectReference {
    let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
    ObjectReference {
        api_version: Some(kind.api_version()),
        kind: Some(kind.kind.to_owned()),
        name: text("name"),
        namespace: text("namespace"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        field_path: None,
    }
}

/// A moment as objects write it.
pub(crate) fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_stand_in_paths() {
        for (name, sound) in [
            ("root-disk.1", true),
            ("", false),
            ("..", false),
            ("a/b", false),
            ("a?b", false),
            ("a%2fb", false),
        ] {
            assert_eq!(is_name(name), sound, "{name:?}");
        }
    }

    #[test]
    fn finalizers_are_taken_away_from_what_was_read() {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["a", "b", "c"]}});
        let patch = without_finalizers(&object, &["a", "c"]);
        let expected = json!({"metadata": {"finalizers": ["b"], "uid": "u", "resourceVersion": "7"}});
        assert_eq!(patch, Some(expected));
        assert_eq!(without_finalizers(&object, &["d"]), None);
    }
}
