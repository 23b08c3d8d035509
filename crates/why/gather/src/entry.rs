//! What somebody asks about: an object by kind and name, a machine by name, or an address.

use serde_json::Value;

use crate::Failed;
use crate::read::{Reader, collection, text};

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// `KIND/NAME`, `NAME`, `NAMESPACE/NAME`, a host name or an address.
    pub object: String,
    /// Where names are looked for first.
    pub namespace: String,
    /// Whether nobody said so, and other namespaces count, too.
    pub anywhere: bool,
}

/// A kind that the chain knows: names by which people call it, kind, group and version, plural.
struct Known(
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
    bool,
);

const KINDS: [Known; 23] = [
    Known(
        &["vm"],
        "VirtualMachine",
        "kubevirt.io/v1",
        "virtualmachines",
        true,
    ),
    Known(
        &["vmi"],
        "VirtualMachineInstance",
        "kubevirt.io/v1",
        "virtualmachineinstances",
        true,
    ),
    Known(
        &["dv"],
        "DataVolume",
        "cdi.kubevirt.io/v1beta1",
        "datavolumes",
        true,
    ),
    Known(
        &["pvc"],
        "PersistentVolumeClaim",
        "v1",
        "persistentvolumeclaims",
        true,
    ),
    Known(&["voy"], "Voyage", "fairway.dev/v1alpha1", "voyages", true),
    Known(
        &["app"],
        "Application",
        "argoproj.io/v1alpha1",
        "applications",
        true,
    ),
    Known(
        &["repo"],
        "Repository",
        "fairway.dev/v1alpha1",
        "repositories",
        false,
    ),
    Known(&["svc"], "Service", "v1", "services", true),
    Known(
        &[],
        "HTTPRoute",
        "gateway.networking.k8s.io/v1",
        "httproutes",
        true,
    ),
    Known(
        &[],
        "GRPCRoute",
        "gateway.networking.k8s.io/v1",
        "grpcroutes",
        true,
    ),
    Known(
        &["gtw"],
        "Gateway",
        "gateway.networking.k8s.io/v1",
        "gateways",
        true,
    ),
    Known(&[], "Route", "route.openshift.io/v1", "routes", true),
    Known(&[], "AuthPolicy", "kuadrant.io/v1", "authpolicies", true),
    Known(
        &[],
        "RateLimitPolicy",
        "kuadrant.io/v1",
        "ratelimitpolicies",
        true,
    ),
    Known(
        &[],
        "PlanPolicy",
        "extensions.kuadrant.io/v1alpha1",
        "planpolicies",
        true,
    ),
    Known(
        &[],
        "APIProduct",
        "devportal.kuadrant.io/v1alpha1",
        "apiproducts",
        true,
    ),
    Known(&["secret"], "Secret", "v1", "secrets", true),
    Known(&["cm"], "ConfigMap", "v1", "configmaps", true),
    Known(
        &[],
        "TLSRoute",
        "gateway.networking.k8s.io/v1alpha3",
        "tlsroutes",
        true,
    ),
    Known(
        &[],
        "TCPRoute",
        "gateway.networking.k8s.io/v1alpha2",
        "tcproutes",
        true,
    ),
    Known(&[], "TLSPolicy", "kuadrant.io/v1", "tlspolicies", true),
    Known(&[], "DNSPolicy", "kuadrant.io/v1", "dnspolicies", true),
    Known(&[], "APIKey", "devportal.kuadrant.io/v1alpha1", "apikeys", true),
];

/// What was asked about, found or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) object: Option<Value>,
    /// The machine that uses it, if it is a disk and one does.
    pub(crate) machine: Option<Value>,
}

impl Entry {
    /// Whether it is a disk that is there.
    pub(crate) fn is_disk(&self) -> bool {
        self.object.is_some() && matches!(self.kind.as_str(), "DataVolume" | "PersistentVolumeClaim")
    }
}

impl Known {
    fn is(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        // `kind.group` is kubectl's way to be exact.
        let word = word.split('.').next().unwrap_or_default();
        self.0.iter().any(|it| *it == word || format!("{it}s") == word)
            || self.1.to_lowercase() == word
            || self.3 == word
    }
}

/// Finds it.
pub(crate) async fn find(reader: &Reader, question: &Question) -> Result<Entry, Failed> {
    let asked = question.object.trim();
    if let Some((_, rest)) = asked.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        return checked(host).map(|()| host_entry(host));
    }
    match asked.split_once('/') {
        Some((word, name)) if !name.is_empty() && !name.contains('/') => {
            checked(name)?;
            if let Some(kind) = KINDS.iter().find(|it| it.is(word)) {
                return Ok(search(reader, kind, name, question).await);
            }
            checked(word)?;
            // No kind of the chain: a namespace.
            let inside = Question {
                object: name.to_owned(),
                namespace: word.to_owned(),
                anywhere: false,
            };
            Ok(by_name(reader, &inside).await)
        }
        Some(_) => Err(Failed::Input(format!(
            "{asked:?} is no object: write KIND/NAME, such as vm/web or httproute/web, or an address such as https://web.example.com"
        ))),
        None => {
            checked(asked)?;
            let found = by_name(reader, question).await;
            match found.object.is_none() && asked.contains('.') {
                true => Ok(host_entry(asked)),
                false => Ok(found),
            }
        }
    }
}

fn host_entry(host: &str) -> Entry {
    Entry {
        kind: "Host".to_owned(),
        name: host.to_lowercase(),
        ..Entry::default()
    }
}

/// What becomes part of an address must not lead elsewhere.
fn checked(name: &str) -> Result<(), Failed> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_');
    match !name.is_empty() && name.chars().all(is_plain) && name != "." && name != ".." {
        true => Ok(()),
        false => Err(Failed::Input(format!(
            "{name:?} is not a name: names have letters, digits, dashes and dots"
        ))),
    }
}

/// A name without a kind: a machine, else a run, else an Application, else a Service.
async fn by_name(reader: &Reader, question: &Question) -> Entry {
    let mut first = None;
    for kind in [0, 4, 5, 7, 8] {
        let found = search(reader, &KINDS[kind], &question.object, question).await;
        if found.object.is_some() {
            return found;
        }
        first.get_or_insert(found);
    }
    first.unwrap_or_default()
}

/// An object of a kind: where it was said, else where Applications are, else anywhere if there is one alone.
async fn search(reader: &Reader, kind: &Known, name: &str, question: &Question) -> Entry {
    let Known(_, word, group, plural, is_namespaced) = *kind;
    let space = if is_namespaced {
        question.namespace.as_str()
    } else {
        ""
    };
    let mut entry = Entry {
        kind: word.to_owned(),
        namespace: space.to_owned(),
        name: name.to_owned(),
        ..Entry::default()
    };
    let found = reader
        .get(plural, &format!("{}/{name}", collection(group, plural, space)))
        .await;
    let found = match found {
        None if is_namespaced && question.anywhere => {
            let path = format!(
                "{}?fieldSelector=metadata.name%3D{name}",
                collection(group, plural, "")
            );
            let mut all = reader.list(plural, &path).await.unwrap_or_default();
            if all.len() == 1 { all.pop() } else { None }
        }
        found => found,
    };
    if let Some(mut found) = found {
        found["kind"] = word.into();
        text(&found, "/metadata/namespace").clone_into(&mut entry.namespace);
        entry.object = Some(found);
    }
    entry
}
