//! Which strategy belongs to which resource of Kubernetes 1.36.

use crate::strategy::{Strategy, Unknown};
use crate::{
    configmap, daemonset, deployment, job, namespace, persistentvolume, persistentvolumeclaim, pod, rbac,
    replicaset, secret, service, serviceaccount, statefulset, storage,
};

/// The strategy of a built-in resource; resources that Kubernetes does not have get what holds for every object.
pub fn strategy(group: &str, resource: &str) -> &'static dyn Strategy {
    match (group, resource) {
        ("", "namespaces") => &namespace::Namespace,
        ("", "configmaps") => &configmap::ConfigMap,
        ("", "secrets") => &secret::Secret,
        ("", "services") => &service::Service,
        ("", "serviceaccounts") => &serviceaccount::ServiceAccount,
        ("rbac.authorization.k8s.io", "roles") => &rbac::Role { namespaced: true },
        ("rbac.authorization.k8s.io", "clusterroles") => &rbac::Role { namespaced: false },
        ("rbac.authorization.k8s.io", "rolebindings") => &rbac::Binding { namespaced: true },
        ("rbac.authorization.k8s.io", "clusterrolebindings") => &rbac::Binding { namespaced: false },
        ("", "pods") => &pod::Pod,
        ("", "podtemplates") => &replicaset::PodTemplate,
        ("", "replicationcontrollers") => &replicaset::ReplicationController,
        ("", "persistentvolumes") => &persistentvolume::PersistentVolume,
        ("", "persistentvolumeclaims") => &persistentvolumeclaim::PersistentVolumeClaim,
        ("apps", "controllerrevisions") => &replicaset::ControllerRevision,
        ("apps", "daemonsets") => &daemonset::DaemonSet,
        ("apps", "deployments") => &deployment::Deployment,
        ("apps", "replicasets") => &replicaset::ReplicaSet,
        ("apps", "statefulsets") => &statefulset::StatefulSet,
        ("batch", "cronjobs") => &job::CronJob,
        ("batch", "jobs") => &job::Job,
        ("storage.k8s.io", "csidrivers") => &storage::CsiDriver,
        ("storage.k8s.io", "csinodes") => &storage::CsiNode,
        ("storage.k8s.io", "csistoragecapacities") => &storage::CsiStorageCapacity,
        ("storage.k8s.io", "storageclasses") => &storage::StorageClass,
        ("storage.k8s.io", "volumeattachments") => &storage::VolumeAttachment,
        ("storage.k8s.io", "volumeattributesclasses") => &storage::VolumeAttributesClass,
        _ => &Unknown,
    }
}
