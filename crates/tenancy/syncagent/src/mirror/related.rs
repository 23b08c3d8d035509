//! Objects that belong to a published one: Secrets and ConfigMaps mostly, copied up or down.

use std::collections::{BTreeMap, BTreeSet};

use fairway_controller::Failure;
use fairway_controller::error::status;
use fairway_controller::requests::{Requests, version};
use fairway_kernel_kinds::selector;
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::mutation::Mutator;
use fairway_kernel_tenancy::naming::RELATED_PREFIX;
use fairway_kernel_tenancy::published::{Origin, Related, Served};
use fairway_kernel_tenancy::related::{
    Find, Pair, Relation, Sync, is_credential, is_fixed_namespace, may_use,
};
use serde_json::{Value, json};

use super::Mirror;
use super::failures::Trouble;
use super::index::{Place, Side};
use super::primary::{Work, text};
use crate::MANAGER;

const NAMESPACES: &str = "/api/v1/namespaces";
/// How many related objects one published object may have; a selector in a consumer's hands could find any number.
const MOST: usize = 128;

/// One relation of one published object.
pub(super) struct Relating<'a> {
    work: &'a Work<'a>,
    related: &'a Related,
    mutator: &'a Mutator,
    at: usize,
    /// Where the originals are, and where the copies go.
    origin: (&'a Requests, Served),
    pub(super) destination: (&'a Requests, Served),
    pair: Pair<'a>,
    /// The namespace of the published object's copy.
    inner_namespace: &'a str,
}

/// An original, and where its copy goes.
pub(super) struct Found {
    pub(super) object: Value,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Mirror {
    pub(super) async fn relation<'a>(
        &'a self,
        work: &'a Work<'a>,
        copy: &'a Value,
        at: usize,
    ) -> Result<Relating<'a>, Trouble> {
        let related = &self.publication.published.related[at];
        let (from, to) = match related.origin {
            Origin::Kcp => ((work.remote, Origin::Kcp), (&self.service, Origin::Service)),
            Origin::Service => ((&self.service, Origin::Service), (work.remote, Origin::Kcp)),
        };
        let origin = self.kind(from.0, from.1, &related.at_origin()).await?;
        let destination = self.kind(to.0, to.1, &related.at_destination()).await?;
        Ok(Relating {
            work,
            related,
            mutator: &self.publication.related_mutators[at],
            at,
            origin: (from.0, origin),
            destination: (to.0, destination),
            pair: Pair {
                remote: &work.original,
                local: copy,
                cluster: work.cluster,
                path: work.path,
                origin: related.origin,
            },
            inner_namespace: text(copy, "/metadata/namespace"),
        })
    }

    /// Brings all related objects in step.
    pub(super) async fn sync_related(&self, work: &Work<'_>, copy: &Value) -> Result<(), Trouble> {
        let (mut places, mut kept) = (Vec::new(), Vec::new());
        let mut annotations = BTreeMap::new();
        let mut first = None;
        for at in 0..self.publication.published.related.len() {
            let result = self
                .sync_relation(work, copy, at, &mut places, &mut kept, &mut annotations)
                .await;
            if let Err(trouble) = result {
                first.get_or_insert(trouble);
            }
        }
        self.watched.note(work.key, places);
        if let Some(trouble) = first {
            return Err(trouble);
        }
        let inner = text(copy, "/metadata/namespace");
        let mut namespaces: BTreeSet<String> = kept.iter().map(|it: &Place| it.namespace.clone()).collect();
        namespaces.insert(inner.to_owned());
        let before = self.watched.keep(work.key, kept);
        namespaces.extend(before.into_iter().map(|it| it.namespace));
        for namespace in &namespaces {
            self.prune(work.key, work.cluster, namespace).await?;
        }
        self.remember(work, &annotations).await
    }

    async fn sync_relation(
        &self,
        work: &Work<'_>,
        copy: &Value,
        at: usize,
        places: &mut Vec<Place>,
        kept: &mut Vec<Place>,
        annotations: &mut BTreeMap<String, Value>,
    ) -> Result<(), Trouble> {
        let identifier = &self.publication.published.related[at].identifier;
        let named = |trouble: Trouble| Trouble {
            failure: match trouble.failure {
                Failure::NotYet(why) => Failure::NotYet(format!("related {identifier:?}: {why}")),
                other => other,
            },
            ..trouble
        };
        let side = self.relation(work, copy, at).await.map_err(named)?;
        let found = self.find(&side, places).await.map_err(named)?;
        let relation = self.relation_of(work.cluster, side.related);
        for (index, it) in found.iter().enumerate() {
            let place = Place::new(at, Side::Service, &it.namespace, &it.name);
            if side.related.origin == Origin::Kcp {
                self.watched.intend(work.key, &place);
            }
            self.copy(&side, &relation, it).await.map_err(named)?;
            if side.related.origin == Origin::Kcp {
                kept.push(place);
            } else {
                let mut value = json!({});
                if !it.namespace.is_empty() {
                    value["namespace"] = json!(it.namespace);
                }
                value["name"] = json!(it.name);
                value["apiVersion"] = json!(side.destination.1.api_version());
                value["kind"] = json!(side.destination.1.kind);
                annotations.insert(
                    format!("{RELATED_PREFIX}{identifier}.{index}"),
                    json!(value.to_string()),
                );
            }
        }
        Ok(())
    }

    pub(super) fn relation_of<'a>(&'a self, cluster: &'a ClusterId, related: &'a Related) -> Relation<'a> {
        Relation {
            cluster,
            publication: self.publication.name(),
            identifier: &related.identifier,
            origin: related.origin,
            agent: &self.agent,
        }
    }

    /// The originals, and where their copies go. What is looked at is noted, whether it is there or not.
    pub(super) async fn find(
        &self,
        side: &Relating<'_>,
        places: &mut Vec<Place>,
    ) -> Result<Vec<Found>, Trouble> {
        let (from, kind) = (&side.origin.0, &side.origin.1);
        let watching = || match side.related.origin {
            Origin::Kcp => Side::Consumer(side.work.key.workspace.clone()),
            Origin::Service => Side::Service,
        };
        let namespaces = self.namespaces(side).await?;
        if namespaces.by_selector {
            places.push(Place::new(side.at, watching(), "", ""));
        }
        let mut found = Vec::new();
        for (here, there) in namespaces.pairs {
            match side.pair.find(&side.related.object).map_err(Trouble::provider)? {
                Find::Named(pairs) => {
                    for (name, copy) in pairs {
                        if !is_name(&name) {
                            let why = format!("{name:?} is no name of an object");
                            return Err(match side.related.origin {
                                Origin::Kcp => Trouble::consumer(why),
                                Origin::Service => Trouble::provider(why),
                            });
                        }
                        places.push(Place::new(side.at, watching(), &here, &name));
                        if let Some(object) = self.read(side, from.get(&kind.object(&here, &name)).await)? {
                            found.push(Found {
                                object,
                                namespace: there.clone(),
                                name: copy,
                            });
                        }
                    }
                }
                Find::Selected(labels) => {
                    places.push(Place::new(side.at, watching(), &here, ""));
                    let list = from
                        .list_selected(&kind.collection(&here), &selector::text(&labels))
                        .await;
                    for object in self.read(side, list)? {
                        let name = text(&object, "/metadata/name");
                        let rule = &side.related.object["selector"];
                        let copy = side
                            .pair
                            .rewritten(rule, name, Some(&object))
                            .map_err(Trouble::provider)?;
                        found.push(Found {
                            namespace: there.clone(),
                            name: copy,
                            object,
                        });
                    }
                }
            }
            if found.len() > MOST {
                return Err(Trouble::consumer(format!(
                    "more than {MOST} objects belong to one"
                )));
            }
        }
        found.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        found.retain(|it| {
            !is_credential(&it.object) && it.object.pointer("/metadata/deletionTimestamp").is_none()
        });
        Ok(found)
    }

    /// Says what to do where a consumer has not agreed.
    fn read<T>(&self, side: &Relating<'_>, answer: Result<T, Failure>) -> Result<T, Trouble> {
        answer.map_err(|failure| match &failure {
            Failure::Api { source, .. }
                if side.related.origin == Origin::Kcp && status(source).is_some_and(|it| it.code == 403) =>
            {
                let kind = &side.origin.1.plural;
                Trouble::consumer(format!(
                    "{kind} cannot be read: accept the permission claim on {kind} in the APIBinding"
                ))
            }
            _ => Trouble::from(failure),
        })
    }

    /// Namespaces to look in, each with that of the copies.
    async fn namespaces(&self, side: &Relating<'_>) -> Result<Namespaces, Trouble> {
        let outer = side.work.key.namespace.clone();
        let inner = side.inner_namespace.to_owned();
        let spec = &side.related.object["namespace"];
        let given = spec.is_object();
        let fixed = given && is_fixed_namespace(spec);
        let mut by_selector = false;
        let mut pairs = if !given {
            if outer.is_empty() || inner.is_empty() {
                return Err(Trouble::provider(
                    "the published object is not in a namespace: set object.namespace",
                ));
            }
            vec![match side.related.origin {
                Origin::Kcp => (outer, inner),
                Origin::Service => (inner, outer),
            }]
        } else {
            match side.pair.find(spec).map_err(Trouble::provider)? {
                Find::Named(pairs) => pairs,
                Find::Selected(labels) => {
                    by_selector = true;
                    let list = side
                        .origin
                        .0
                        .list_selected(NAMESPACES, &selector::text(&labels))
                        .await;
                    let mut pairs = Vec::new();
                    for namespace in self.read(side, list)? {
                        let name = text(&namespace, "/metadata/name");
                        let there = side.pair.rewritten(&spec["selector"], name, None);
                        pairs.push((name.to_owned(), there.map_err(Trouble::provider)?));
                    }
                    pairs
                }
            }
        };
        let mut refused = None;
        let mut allowed = Vec::new();
        for (here, there) in pairs.drain(..) {
            let (within, without) = match side.related.origin {
                Origin::Kcp => (&there, &here),
                Origin::Service => (&here, &there),
            };
            if !is_name(without) {
                return Err(Trouble::consumer(format!(
                    "{without:?} is no name of a namespace"
                )));
            }
            match self.may_use(side, within, fixed).await? {
                Ok(()) => allowed.push((here, there)),
                // Of what a selector finds, what is not the workspace's is not meant.
                Err(_) if by_selector && side.related.origin == Origin::Service => {}
                Err(why) => refused = Some(why),
            }
        }
        match refused {
            Some(why) => Err(Trouble::provider(why)),
            None => Ok(Namespaces {
                pairs: allowed,
                by_selector,
            }),
        }
    }

    async fn may_use(
        &self,
        side: &Relating<'_>,
        namespace: &str,
        fixed: bool,
    ) -> Result<Result<(), String>, Trouble> {
        let primary = side.inner_namespace;
        let existing = if namespace == primary || fixed || !is_name(namespace) {
            None
        } else {
            self.service.get(&format!("{NAMESPACES}/{namespace}")).await?
        };
        Ok(may_use(
            namespace,
            existing.as_ref(),
            primary,
            fixed,
            side.work.cluster,
        ))
    }

    /// Makes one copy equal to its original.
    async fn copy(&self, side: &Relating<'_>, relation: &Relation<'_>, found: &Found) -> Result<(), Trouble> {
        let (to, kind) = (&side.destination.0, &side.destination.1);
        if !is_name(&found.name) {
            return Err(Trouble::provider(format!(
                "{:?} is no name of an object",
                found.name
            )));
        }
        let address = kind.object(&found.namespace, &found.name);
        let _alone = self.lock(&address).await;
        let existing = to.get(&address).await?;
        let place = (found.namespace.as_str(), found.name.as_str());
        let sync = relation.sync(
            &found.object,
            side.mutator,
            kind,
            place,
            existing.as_ref(),
            MANAGER,
        );
        let desired = match sync.map_err(Trouble::provider)? {
            Sync::Apply(desired) => desired,
            Sync::Taken => {
                let why = format!(
                    "{} {}/{} is there already and is not overwritten: delete or rename it",
                    kind.kind, found.namespace, found.name
                );
                return Err(match side.related.origin {
                    Origin::Service => Trouble::consumer(why),
                    Origin::Kcp => Trouble::provider(why),
                });
            }
        };
        if existing.is_none() && kind.namespaced {
            ensure_namespace(to, &found.namespace).await?;
        }
        let mut written = to.apply(&address, &desired, MANAGER, existing.is_some()).await?;
        if side.related.sync_status && kind.has_status && written["status"] != found.object["status"] {
            let status = found.object["status"].clone();
            let status = if status.is_null() { json!({}) } else { status };
            if let Some(now) = to.replace_status(&address, &written, &status).await? {
                written = now;
            }
        }
        if existing.is_some_and(|it| version(&it) != version(&written)) {
            tracing::debug!(address, "a related object was changed");
        }
        Ok(())
    }

    /// Writes down on the published object which objects have been copied up to its owner.
    async fn remember(&self, work: &Work<'_>, annotations: &BTreeMap<String, Value>) -> Result<(), Trouble> {
        let known = work.original["metadata"]["annotations"].as_object();
        let mut changes = json!({});
        for (key, value) in annotations {
            if known.and_then(|it| it.get(key)) != Some(value) {
                changes[key] = value.clone();
            }
        }
        for key in known.into_iter().flatten().map(|(key, _)| key) {
            if key.starts_with(RELATED_PREFIX) && !annotations.contains_key(key) {
                changes[key] = Value::Null;
            }
        }
        if changes == json!({}) {
            return Ok(());
        }
        let patch = json!({"metadata": {"resourceVersion": version(&work.original), "annotations": changes}});
        let address = self
            .publication
            .remote
            .object(&work.key.namespace, &work.key.name);
        work.remote.merge(&address, &patch).await?;
        Ok(())
    }
}

struct Namespaces {
    pairs: Vec<(String, String)>,
    by_selector: bool,
}

async fn ensure_namespace(side: &Requests, namespace: &str) -> Result<(), Trouble> {
    if side.get(&format!("{NAMESPACES}/{namespace}")).await?.is_none() {
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        side.create(NAMESPACES, &made).await?;
    }
    Ok(())
}

/// Whether a text can stand in an address as a name: what it comes from may be a consumer's.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
        && text != "."
        && text != ".."
}
