//! The end of what belongs to published objects: copies that nobody has use for any more.
//!
//! Several published objects may name the same Secret, so a copy goes when none of them does. Who keeps what is known once
//! all objects of a workspace have been looked at; until then nothing is deleted, and whoever is looked at last does it.

use fairway_controller::ObjectKey;
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::published::Origin;
use serde_json::Value;

use super::Mirror;
use super::failures::Trouble;
use super::index::{Place, Side};
use super::primary::{Work, text};
use crate::MANAGER;

impl Mirror {
    /// Deletes copies of a workspace on the service cluster that nobody keeps; an empty namespace means all.
    pub(super) async fn prune(
        &self,
        key: &ObjectKey,
        cluster: &ClusterId,
        namespace: &str,
    ) -> Result<(), Trouble> {
        let seen = self
            .originals
            .iter()
            .flat_map(|it| it.of_workspace(&key.workspace));
        let others = seen.map(|(it, _)| it).filter(|it| it != key);
        if !self.publication.published.has_related(Origin::Kcp) || !self.watched.knows(others) {
            return Ok(());
        }
        for (at, related) in self.publication.published.related.iter().enumerate() {
            if related.origin != Origin::Kcp {
                continue;
            }
            let kind = self
                .kind(&self.service, Origin::Service, &related.at_destination())
                .await?;
            let mark = self.relation_of(cluster, related).mark();
            let mark: Vec<String> = mark.iter().map(|(key, value)| format!("{key}={value}")).collect();
            for copy in self
                .service
                .list_selected(&kind.collection(namespace), &mark.join(","))
                .await?
            {
                let (namespace, name) = (text(&copy, "/metadata/namespace"), text(&copy, "/metadata/name"));
                let address = kind.object(namespace, name);
                // Whoever is about to make it again has said so before he takes this lock.
                let _alone = self.lock(&address).await;
                if !self
                    .watched
                    .is_kept(&Place::new(at, Side::Service, namespace, name))
                {
                    self.service.delete_read(&address, &copy).await?;
                }
            }
        }
        Ok(())
    }

    /// Deletes what was copied down and nobody else keeps, and what was copied up where the publication says so.
    pub(super) async fn remove_related(&self, work: &Work<'_>, copy: &Value) -> Result<(), Trouble> {
        for (at, related) in self.publication.published.related.iter().enumerate() {
            if related.origin == Origin::Service
                && related.cleanup
                && let Err(trouble) = self.remove_copied_up(work, copy, at).await
            {
                // Whoever deletes an object must not be held by what he has taken from the agent meanwhile.
                tracing::debug!(key = %work.key, reason = trouble.failure.sentence(), "a copy in a workspace stays");
            }
        }
        self.watched.forget(work.key);
        self.prune(work.key, work.cluster, "").await
    }

    async fn remove_copied_up(&self, work: &Work<'_>, copy: &Value, at: usize) -> Result<(), Trouble> {
        let side = self.relation(work, copy, at).await?;
        let relation = self.relation_of(work.cluster, &self.publication.published.related[at]);
        for found in self.find(&side, &mut Vec::new()).await? {
            let (to, kind) = (&side.destination.0, &side.destination.1);
            let address = kind.object(&found.namespace, &found.name);
            if let Some(existing) = to.get(&address).await?
                && relation.owns(&found.object, &existing, MANAGER)
            {
                to.delete_read(&address, &existing).await?;
            }
        }
        Ok(())
    }
}
