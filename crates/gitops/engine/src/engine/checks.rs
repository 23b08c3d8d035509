//! Whether an application may be what it wants to be: its project, its sources, its destination.

use fairway_controller::{Failure, Requests};
use fairway_gitops_sync::operation::SyncOptions;

use super::{Engine, Ground, Groundless};
use crate::act::Hands;
use crate::application::{Application, Plugin};
use crate::conditions::{Condition, Type};
use crate::destination::Lost;
use crate::observe::{Observation, Scene};

impl Engine {
    /// Where an application goes, or why it may not; the inner error is for people.
    pub(super) async fn ground(
        &self,
        requests: &Requests,
        application: &Application,
    ) -> Result<Result<Ground, Groundless>, Failure> {
        let refused = |message: String, is_lost: bool| {
            let condition = Condition::new(Type::InvalidSpecError, message);
            Ok(Err(Groundless { condition, is_lost }))
        };
        let invalid = |message: String| refused(message, false);
        let name = application.project();
        let Some(project) = self.catalog.project(requests, application).await? else {
            return invalid(format!(
                "Application referencing project {name} which does not exist"
            ));
        };
        let namespace = &application.key.namespace;
        if !application.is_in_control_plane() && !project.spec.permits_application_in(namespace) {
            return invalid(format!(
                "application {:?} in namespace {namespace:?} is not permitted to use project {name:?}: sourceNamespaces does \
                 not name it",
                application.key.name
            ));
        }
        let sources = application.sources();
        if sources.is_empty() {
            return invalid(
                "spec.source.repoURL and either spec.source.path or spec.source.chart are required"
                    .to_owned(),
            );
        }
        for source in &sources {
            if source.repo_url.is_empty() {
                return invalid(
                    "spec.source.repoURL and either spec.source.path or spec.source.chart are required"
                        .to_owned(),
                );
            }
            if !project.spec.permits_source(&source.repo_url) {
                return invalid(format!(
                    "application repo {} is not permitted in project '{name}'",
                    source.repo_url
                ));
            }
        }
        let place = match self.destinations.find(requests, application).await {
            Ok(place) => place,
            Err(Lost::Invalid(message)) => return invalid(message),
            Err(Lost::Missing(message)) => return refused(message, true),
            Err(Lost::Failed(failure)) => return Err(failure),
        };
        let to = &application.spec.destination.namespace;
        if !project.spec.permits_destination(&place.for_project(to), &[]) {
            return invalid(format!(
                "application destination server '{}' and namespace '{to}' do not match any of the allowed destinations in \
                 project '{name}'",
                place.server
            ));
        }
        let identity = match place.identity(application, &project) {
            Ok(identity) => identity,
            Err(message) => return invalid(message),
        };
        let settings = self.catalog.settings(requests, application).await?;
        Ok(Ok(Ground {
            hands: Hands::new(&place.cluster, &place.workspace, &identity),
            place,
            project,
            settings,
        }))
    }
}

/// What people should know although nothing stops for it.
pub(super) fn complaints(scene: &Scene<'_>) -> Vec<Condition> {
    let mut found = Vec::new();
    let application = scene.application;
    let options = SyncOptions::read(application.sync_options().iter().map(String::as_str));
    let mut unsupported: Vec<String> = options
        .unknown
        .iter()
        .map(|word| format!("syncOptions: {word}"))
        .collect();
    if !application.spec.source_hydrator.is_null() {
        unsupported.push("sourceHydrator".to_owned());
    }
    for source in application.sources() {
        let plugin = source.plugin.as_ref();
        let is_told = |plugin: &Plugin| !plugin.parameters.is_empty() && plugin.is_built_in();
        if plugin.is_some_and(is_told) {
            unsupported.push("source.plugin.parameters".to_owned());
        }
    }
    if !unsupported.is_empty() {
        found.push(Condition::new(
            Type::UnsupportedFieldWarning,
            format!("not acted on: {}", unsupported.join(", ")),
        ));
    }
    let said = [&scene.project.complaint, &scene.settings.complaint];
    found.extend(
        said.into_iter()
            .flatten()
            .map(|message| Condition::new(Type::UnknownError, message.clone())),
    );
    found
}

/// Objects of nobody in the application's namespace, if its project wants to know.
pub(super) async fn orphans(scene: &Scene<'_>, observation: &Observation) -> Vec<Condition> {
    let Some(wanted) = &scene.project.orphans else {
        return Vec::new();
    };
    let namespace = &scene.application.spec.destination.namespace;
    if wanted.warn == Some(false) || namespace.is_empty() {
        return Vec::new();
    }
    let mut count = 0;
    for kind in observation
        .kinds
        .watchable()
        .iter()
        .filter(|kind| kind.namespaced)
    {
        count += super::syncing::orphans_of(scene, observation, kind, wanted).await;
    }
    match count {
        0 => Vec::new(),
        count => vec![Condition::new(
            Type::OrphanedResourceWarning,
            format!("Application has {count} orphaned resources"),
        )],
    }
}
