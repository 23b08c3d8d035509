//! What runs for an entity: the Applications and objects that its annotations mean, as they are now.
//!
//! `GET /entities/by-name/:kind/:namespace/:name/live`. Backstage's plugins for Argo CD and Kubernetes hand out whole objects of whole
//! clusters; this says what a page about an entity needs. Nobody sees more than he may list himself: what he may not is named.

use fairway_controller::Requests;
use fairway_portal_entity::live::{self, Applications, Live};
use serde_json::{Value, json};

use crate::access::Wish;
use crate::rest::{Answer, Call, Refusal, reference, visible};

/// A kind that is looked at.
struct Shown {
    kind: &'static str,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
}

const fn shown(
    kind: &'static str,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
) -> Shown {
    Shown {
        kind,
        group,
        version,
        plural,
    }
}

const APPLICATIONS: Shown = shown("Application", "argoproj.io", "v1alpha1", "applications");
/// Objects that an entity's labels may mean.
const OBJECTS: [Shown; 5] = [
    shown("VirtualMachine", "kubevirt.io", "v1", "virtualmachines"),
    shown("DataVolume", "cdi.kubevirt.io", "v1beta1", "datavolumes"),
    shown("Service", "", "v1", "services"),
    shown("Gateway", "gateway.networking.k8s.io", "v1", "gateways"),
    shown("HTTPRoute", "gateway.networking.k8s.io", "v1", "httproutes"),
];
/// The most objects of an answer.
const MAX_OBJECTS: usize = 500;

impl Shown {
    fn path(&self, namespace: Option<&str>) -> String {
        let root = match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}

/// Answers what runs for an entity.
pub(crate) async fn of_entity(
    call: &Call,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Answer, Refusal> {
    let entity = visible(call, &reference(kind, namespace, name)).await?;
    let live = Live::of(&entity)?;
    let mut looking = Looking {
        call,
        hidden: Vec::new(),
    };
    let mut applications = Vec::new();
    if live.applications != Applications::None {
        let place = match &live.applications {
            Applications::Named(namespace, _) => namespace.as_deref(),
            _ => None,
        };
        for object in looking.list(&APPLICATIONS, place).await? {
            if live.means_application(&object) && applications.len() < MAX_OBJECTS {
                applications.push(live::application(&object));
            }
        }
    }
    let mut objects = Vec::new();
    if live.objects.is_some() {
        for kind in &OBJECTS {
            for object in looking.list(kind, live.namespace.as_deref()).await? {
                if live.means_object(&object) && objects.len() < MAX_OBJECTS {
                    objects.push(live::object(kind.kind, &object));
                }
            }
        }
    }
    Ok(Answer::ok(&json!({
        "applications": applications,
        "objects": objects,
        "hidden": looking.hidden,
    })))
}

struct Looking<'c> {
    call: &'c Call,
    /// Kinds that the caller may not list.
    hidden: Vec<&'static str>,
}

impl Looking<'_> {
    /// The objects of a kind that the caller may list.
    async fn list(&mut self, kind: &Shown, namespace: Option<&str>) -> Result<Vec<Value>, Refusal> {
        let is_name = namespace.is_none_or(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        });
        if !is_name {
            return Err(Refusal::input(format!(
                "the annotation backstage.io/kubernetes-namespace is not the name of a namespace: {}",
                namespace.unwrap_or_default()
            )));
        }
        let wish = Wish {
            verb: "list",
            group: kind.group,
            resource: kind.plural,
            namespace,
            name: None,
        };
        if !self.call.may(wish).await? {
            self.hidden.push(kind.kind);
            return Ok(Vec::new());
        }
        let requests = Requests::new(self.call.client.clone());
        match requests.list(&kind.path(namespace)).await {
            Ok(found) => Ok(found),
            // A cluster without the kind has none of it.
            Err(failure) if is_absent(&failure) => Ok(Vec::new()),
            Err(failure) => Err(Refusal::of(&failure)),
        }
    }
}

fn is_absent(failure: &fairway_controller::Failure) -> bool {
    matches!(failure, fairway_controller::Failure::Api { source, .. } if fairway_controller::error::is_not_found(source))
}
