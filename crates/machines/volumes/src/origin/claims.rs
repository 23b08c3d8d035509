//! Copies of claims: who may have one, and when.

use fairway_controller::{Attempt as _, Failure, ObjectKey, Requests};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, PostParams};

use super::{Origin, Origins, blocking};
use crate::decide::volume;
use crate::place::{Content, Place};
use crate::uses;
use crate::view::{self, Claim, Named, Volume};

impl Origins {
    /// A claim that is copied.
    pub(super) async fn claim(
        &self,
        requests: &Requests,
        target: &ObjectKey,
        named: &Named,
        noted: Option<&Named>,
    ) -> Result<Origin, Failure> {
        let is_allowed = named.namespace == target.namespace || Some(named) == noted;
        if !is_allowed && !self.may_clone(target, named).await? {
            return Ok(Origin::asks(
                "ErrUnableToClone",
                format!(
                    "{}/{} is not what could be cloned when this DataVolume was made, and system:serviceaccount:{}:default may \
                     not clone it: bind it in the namespace {} to a role that may create datavolumes/source",
                    named.namespace, named.name, target.namespace, named.namespace
                ),
            ));
        }
        let path = format!(
            "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
            named.namespace, named.name
        );
        let Some(found) = requests.get(&path).await? else {
            return Ok(Origin::waits(
                "CloneWithoutSource",
                format!("The source pvc {} doesn't exist", named.name),
            ));
        };
        let claim: Claim = view::read("persistentvolumeclaim", &found)?;
        if claim.status.phase != "Bound" || claim.metadata.is_deleting() {
            return Ok(Origin::waits(
                "ImportPVCNotReady",
                "The source PVC is not fully imported".to_owned(),
            ));
        }
        let name = claim.spec.volume_name.as_str();
        let directory = self.place.directory(&target.workspace, name);
        let volume = requests.get(&format!("/api/v1/persistentvolumes/{name}")).await?;
        let volume: Volume = view::read("persistentvolume", &volume.unwrap_or_default())?;
        let is_its = volume
            .spec
            .claim_ref
            .as_ref()
            .is_some_and(|it| it.uid == claim.metadata.uid);
        if !is_its || !volume::is_of(&volume, &self.node, &directory) {
            return Ok(Origin::Refused(format!(
                "The source pvc {} is no volume of the node {}, and cannot be copied there",
                named.name, self.node
            )));
        }
        let source = ObjectKey::new(&target.workspace, &named.namespace, &named.name);
        if let Some(instance) = uses::holder(requests, &source).await? {
            return Ok(Origin::waits(
                "CloneSourceInUse",
                format!(
                    "VirtualMachineInstance {}/{instance} using PersistentVolumeClaim {}",
                    named.namespace, named.name
                ),
            ));
        }
        let place = directory.clone();
        match blocking(move || Place::size(&place)).await {
            Ok(Some(size)) => Ok(Origin::Here {
                content: Content::Volume(directory),
                size: Some(size),
            }),
            Ok(None) => Ok(Origin::Refused(format!(
                "The source pvc {} has no disk",
                named.name
            ))),
            Err(error) => Ok(Origin::Refused(crate::fill::sentence(&error))),
        }
    }

    /// CDI's rule for copies into another namespace, as KubeVirt applies it to machines: the service account of the namespace
    /// that gets the copy has to be allowed to create `datavolumes/source` where the original is. It is asked here where nobody has
    /// asked when the DataVolume was made.
    async fn may_clone(&self, target: &ObjectKey, named: &Named) -> Result<bool, Failure> {
        let namespace = &target.namespace;
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(format!("system:serviceaccount:{namespace}:default")),
                groups: Some(vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated".to_owned(),
                ]),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(named.namespace.clone()),
                    verb: Some("create".to_owned()),
                    group: Some("cdi.kubevirt.io".to_owned()),
                    resource: Some("datavolumes".to_owned()),
                    subresource: Some("source".to_owned()),
                    name: Some(named.name.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.clients.of(&target.workspace));
        let answer = api
            .create(&PostParams::default(), &review)
            .await
            .attempting("ask who may clone")?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
