//! The two kinds as clients name them.

use fairway_api::Kind;
use fairway_api::fairway::{CATALOG_ENTITY, CATALOG_LOCATION, REPOSITORY};
use fairway_controller::Json;
use kube::Client;
use kube::api::Api;
use kube::core::ApiResource;

/// The label that names an entity's location, by its UID.
pub(crate) const LOCATION_LABEL: &str = "fairway.dev/catalog-location";
/// Its value changes when somebody wants a location to be read again.
pub(crate) const REFRESH: &str = "fairway.dev/refresh-requested";
/// Somebody has registered a location that was found before.
pub(crate) const REGISTERED: &str = "fairway.dev/catalog-registered";
/// `delete` on a location: what its files no longer say goes at once, instead of staying as an orphan.
pub(crate) const ORPHANS: &str = "fairway.dev/orphan-strategy";
/// `ignore` on a Repository: it is not looked into.
pub(crate) const DISCOVERY: &str = "fairway.dev/catalog";

pub(crate) const LOCATIONS: &str = "/apis/fairway.dev/v1alpha1/cataloglocations";
pub(crate) const ENTITIES: &str = "/apis/fairway.dev/v1alpha1/catalogentities";

pub(crate) fn location(name: &str) -> String {
    format!("{LOCATIONS}/{name}")
}

pub(crate) fn entity(name: &str) -> String {
    format!("{ENTITIES}/{name}")
}

fn resource(kind: Kind) -> ApiResource {
    ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
    }
}

pub(crate) fn entities(client: Client) -> Api<Json> {
    Api::all_with(client, &resource(CATALOG_ENTITY))
}

pub(crate) fn locations(client: Client) -> Api<Json> {
    Api::all_with(client, &resource(CATALOG_LOCATION))
}

pub(crate) fn repositories(client: Client) -> Api<Json> {
    Api::all_with(client, &resource(REPOSITORY))
}
