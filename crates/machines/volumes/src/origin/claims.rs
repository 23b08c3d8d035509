//! Copies of claims: who may have one, and when.

use fairway_controller::{Attempt as _, Failure, ObjectKey, Requests, access};
use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use serde_json::Value;

use super::{Origin, Origins, Permit, blocking};
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
        permit: &Permit,
    ) -> Result<Origin, Failure> {
        if let Some(account) = self.lacks_right(requests, target, named, permit).await? {
            return Ok(Self::forbidden(&account, named));
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

    /// It may not be copied.
    pub(super) fn forbidden(account: &str, named: &Named) -> Origin {
        Origin::asks(
            "ErrUnableToClone",
            format!(
                "{}/{} is not what could be cloned when this DataVolume was made, and {account} may not clone it: bind it in the \
                 namespace {} to a role that may create datavolumes/source",
                named.namespace, named.name, named.namespace
            ),
        )
    }

    /// CDI's rule for copies into another namespace, as KubeVirt applies it to machines: the service account of the machine, or that of
    /// the namespace that gets the copy, has to be allowed to create `datavolumes/source` where the original is, or a pod, which
    /// could read it. It is asked here where nobody has asked when the DataVolume was made. Returns who may not.
    pub(super) async fn lacks_right(
        &self,
        requests: &Requests,
        target: &ObjectKey,
        named: &Named,
        permit: &Permit,
    ) -> Result<Option<String>, Failure> {
        if named.namespace == target.namespace || permit.noted.as_ref() == Some(named) {
            return Ok(None);
        }
        let namespace = &target.namespace;
        let mut account = "default".to_owned();
        if let Some(machine) = &permit.machine {
            let path = format!("/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{machine}");
            let machine = requests.get(&path).await?.unwrap_or_default();
            if let Some(own) = account_of(&machine, &target.name) {
                account = own;
            }
        }
        let account = format!("system:serviceaccount:{namespace}:{account}");
        for (group, resource, subresource) in [("cdi.kubevirt.io", "datavolumes", "source"), ("", "pods", "")]
        {
            let asked = ResourceAttributes {
                namespace: Some(named.namespace.clone()),
                verb: Some("create".to_owned()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource: Some(subresource.to_owned()),
                name: Some(named.name.clone()),
                ..ResourceAttributes::default()
            };
            if self.may(target, &account, asked).await? {
                return Ok(None);
            }
        }
        Ok(Some(account))
    }

    async fn may(
        &self,
        target: &ObjectKey,
        account: &str,
        asked: ResourceAttributes,
    ) -> Result<bool, Failure> {
        let user = UserInfo {
            username: Some(account.to_owned()),
            groups: Some(vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{}", target.namespace),
                "system:authenticated".to_owned(),
            ]),
            ..UserInfo::default()
        };
        access::may(self.clients.of(&target.workspace), user, asked)
            .await
            .attempting("ask who may clone")
    }
}

/// The service account that a machine has as a disk, if it has one. Anybody may say that a disk is a machine's: the machine has to
/// say so, too.
fn account_of(machine: &Value, disk: &str) -> Option<String> {
    let all = |pointer: &str| {
        let found = machine.pointer(pointer).and_then(Value::as_array);
        found.map(Vec::as_slice).unwrap_or_default()
    };
    let templates = all("/spec/dataVolumeTemplates");
    if !templates.iter().any(|it| it["metadata"]["name"] == disk) {
        return None;
    }
    let volumes = all("/spec/template/spec/volumes").iter();
    let mut named = volumes.filter_map(|it| it.pointer("/serviceAccount/serviceAccountName")?.as_str());
    named.find(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_has_the_account_of_its_volume() {
        let with = |volume: Value| {
            json!({"spec": {
                "dataVolumeTemplates": [{"metadata": {"name": "root"}}],
                "template": {"spec": {"volumes": [{"name": "a"}, volume]}},
            }})
        };
        let named = with(json!({"name": "sa", "serviceAccount": {"serviceAccountName": "app"}}));
        assert_eq!(account_of(&named, "root").as_deref(), Some("app"));
        assert_eq!(account_of(&named, "other"), None);
        assert_eq!(account_of(&with(json!({"name": "b"})), "root"), None);
        assert_eq!(account_of(&Value::Null, "root"), None);
    }
}
