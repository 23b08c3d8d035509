//! APIProducts: what their routes offer, and how it is described.

use std::time::Duration;

use fairway_api::gateway::API_PRODUCT;
use fairway_controller::{Failure, ObjectKey, Outcome};
use fairway_gateway_policy::portal::{Told, Wanted, discover, product_status, told, wanted};
use jiff::Timestamp;
use serde_json::Value;

use super::{Portal, status, tell};
use crate::kinds::path;
use crate::statuses::now;

/// How soon is looked again for a place to fetch a document.
const SOON: Duration = Duration::from_secs(1);

impl Portal {
    pub(super) async fn product(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(product) = self.seen.products.get(key) else {
            return Ok(Outcome::Done);
        };
        let route = self.seen.routes.get(&target(key, &product));
        let (auth, plans) = (
            self.seen.auth.of_workspace(&key.workspace),
            self.seen.plans.of_workspace(&key.workspace),
        );
        let auth: Vec<&Value> = auth.iter().map(|(_, policy)| &**policy).collect();
        let plans: Vec<&Value> = plans.iter().map(|(_, policy)| &**policy).collect();
        let found = discover(route.as_deref(), &auth, &plans);
        let Some((document, outcome)) = self.document(&product).await else {
            return Ok(Outcome::Again(SOON));
        };
        let (conditions, rest) = product_status(&product, &found, document.as_ref());
        let told = status(&product, &conditions, rest);
        let requests = self.requests(&key.workspace);
        tell(&requests, &path(&API_PRODUCT, key), &product, told).await?;
        Ok(outcome)
    }

    /// What is told of a product's document, and when it is looked at again. None: it has to wait for others.
    async fn document(&self, product: &Value) -> Option<(Option<Told>, Outcome)> {
        let address = match wanted(product, Timestamp::now().as_second()) {
            Wanted::Nothing => return Some((None, Outcome::Done)),
            Wanted::Kept { told, again_in } => {
                let left = again_in.map(|left| Duration::from_secs(left.unsigned_abs()));
                return Some((Some(told), left.map_or(Outcome::Done, Outcome::Again)));
            }
            Wanted::Fetch(address) => address,
        };
        let fetched = self.documents.fetch(address).await?;
        // What is written wakes us up again, with what is left to do.
        Some((Some(told(product, fetched, &now())), Outcome::Done))
    }
}

/// The route of a product.
pub(super) fn target(key: &ObjectKey, product: &Value) -> ObjectKey {
    let name = product["spec"]["targetRef"]["name"].as_str().unwrap_or("");
    ObjectKey::new(&key.workspace, &key.namespace, name)
}
