//! Deletes the objects of a namespace, kind by kind, and looks what is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::Metadata;
use fairway_controller::error::{sentence, status};
use fairway_controller::kinds::Kind;
use futures::{StreamExt as _, stream};
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, Error, ResourceExt as _};

use super::decide::{Remains, Survey};

/// Kinds that are emptied at once.
const AT_ONCE: usize = 4;

/// Empties the kinds, and adds what was found to the survey.
pub(crate) async fn all(client: &Client, namespace: &str, kinds: Vec<Arc<Kind>>, survey: &mut Survey) {
    let found: Vec<_> = stream::iter(kinds)
        .map(|kind| async move {
            let result = one(client, namespace, &kind).await;
            (kind, result)
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    for (kind, result) in found {
        let resource = format!("{}.{}", kind.resource.plural, kind.resource.group);
        match result {
            Ok(left) if left.is_empty() => {}
            Ok(left) => survey.remains.push(remains(resource, &left)),
            Err(error) => survey.failures.push(format!("{resource}: {}", sentence(&error))),
        }
    }
}

fn remains(resource: String, left: &[Metadata]) -> Remains {
    let mut finalizers = BTreeMap::new();
    for finalizer in left.iter().flat_map(|object| object.finalizers()) {
        *finalizers.entry(finalizer.clone()).or_insert(0) += 1;
    }
    Remains {
        resource,
        count: left.len(),
        finalizers,
    }
}

/// Whether the kind is not there, or not for this: a CRD may have gone meanwhile.
fn is_unsupported(error: &Error) -> bool {
    status(error).is_some_and(|s| s.code == 404 || s.code == 405)
}

/// Deletes the objects of one kind and returns what is left. Most kinds of most namespaces are empty, so it looks first.
async fn one(client: &Client, namespace: &str, kind: &Kind) -> Result<Vec<Metadata>, Error> {
    let api: Api<Metadata> = kind.api(client.clone(), namespace);
    let there = list(&api).await?;
    if there.is_empty() {
        return Ok(there);
    }
    let background = DeleteParams::background();
    let mut singly = !kind.can(&["deletecollection"]);
    if !singly {
        match api.delete_collection(&background, &ListParams::default()).await {
            Err(error) if is_unsupported(&error) => singly = true,
            answer => drop(answer?),
        }
    }
    if singly {
        for object in &there {
            match api.delete(&object.name_any(), &background).await {
                Err(error) if is_unsupported(&error) => {}
                answer => drop(answer?),
            }
        }
    }
    list(&api).await
}

async fn list(api: &Api<Metadata>) -> Result<Vec<Metadata>, Error> {
    match api.list(&ListParams::default()).await {
        Err(error) if is_unsupported(&error) => Ok(Vec::new()),
        answer => Ok(answer?.items),
    }
}
