//! Which strategy belongs to which resource of Kubernetes 1.36.

use crate::strategy::{Strategy, Unknown};
use crate::{
    admissionregistration, apiregistration, autoscaling, certificates, configmap, coordination, daemonset,
    deployment, devices, endpoints, event, flowcontrol, ingress, job, namespace, networking, node,
    persistentvolume, persistentvolumeclaim, pod, quota, rbac, replicaset, scheduling, secret, servers,
    service, serviceaccount, statefulset, storage,
};

/// The strategy of a built-in resource; resources that Kubernetes does not have get what holds for every object.
pub fn strategy(group: &str, resource: &str) -> &'static dyn Strategy {
    let found = match group {
        "" => core(resource),
        "admissionregistration.k8s.io" => admission(resource),
        "apps" => apps(resource),
        "batch" => batch(resource),
        "certificates.k8s.io" => certificate(resource),
        "networking.k8s.io" => network(resource),
        "rbac.authorization.k8s.io" => role(resource),
        "resource.k8s.io" => device(resource),
        "storage.k8s.io" => volume(resource),
        _ => other(group, resource),
    };
    found.unwrap_or(&Unknown)
}

type Found = Option<&'static dyn Strategy>;

fn core(resource: &str) -> Found {
    Some(match resource {
        "bindings" => &servers::Binding,
        "componentstatuses" => &servers::COMPONENT_STATUSES,
        "configmaps" => &configmap::ConfigMap,
        "endpoints" => &endpoints::Endpoints,
        "events" => &event::CoreEvent,
        "limitranges" => &quota::LimitRange,
        "namespaces" => &namespace::Namespace,
        "nodes" => &node::Node,
        "persistentvolumeclaims" => &persistentvolumeclaim::PersistentVolumeClaim,
        "persistentvolumes" => &persistentvolume::PersistentVolume,
        "pods" => &pod::Pod,
        "podtemplates" => &replicaset::PodTemplate,
        "replicationcontrollers" => &replicaset::ReplicationController,
        "resourcequotas" => &quota::ResourceQuota,
        "secrets" => &secret::Secret,
        "serviceaccounts" => &serviceaccount::ServiceAccount,
        "services" => &service::Service,
        _ => return None,
    })
}

fn admission(resource: &str) -> Found {
    Some(match resource {
        "mutatingadmissionpolicies" => &admissionregistration::AdmissionPolicy { mutating: true },
        "mutatingadmissionpolicybindings" => &admissionregistration::PolicyBinding { mutating: true },
        "mutatingwebhookconfigurations" => &admissionregistration::WebhookConfiguration { mutating: true },
        "validatingadmissionpolicies" => &admissionregistration::AdmissionPolicy { mutating: false },
        "validatingadmissionpolicybindings" => &admissionregistration::PolicyBinding { mutating: false },
        "validatingwebhookconfigurations" => &admissionregistration::WebhookConfiguration { mutating: false },
        _ => return None,
    })
}

fn apps(resource: &str) -> Found {
    Some(match resource {
        "controllerrevisions" => &replicaset::ControllerRevision,
        "daemonsets" => &daemonset::DaemonSet,
        "deployments" => &deployment::Deployment,
        "replicasets" => &replicaset::ReplicaSet,
        "statefulsets" => &statefulset::StatefulSet,
        _ => return None,
    })
}

fn batch(resource: &str) -> Found {
    Some(match resource {
        "cronjobs" => &job::CronJob,
        "jobs" => &job::Job,
        _ => return None,
    })
}

fn certificate(resource: &str) -> Found {
    Some(match resource {
        "certificatesigningrequests" => &certificates::CertificateSigningRequest,
        "clustertrustbundles" => &certificates::ClusterTrustBundle,
        "podcertificaterequests" => &certificates::PodCertificateRequest,
        _ => return None,
    })
}

fn network(resource: &str) -> Found {
    Some(match resource {
        "ingressclasses" => &networking::IngressClass,
        "ingresses" => &ingress::Ingress,
        "ipaddresses" => &networking::IpAddress,
        "networkpolicies" => &networking::NetworkPolicy,
        "servicecidrs" => &networking::ServiceCidr,
        _ => return None,
    })
}

fn role(resource: &str) -> Found {
    Some(match resource {
        "clusterrolebindings" => &rbac::Binding { namespaced: false },
        "clusterroles" => &rbac::Role { namespaced: false },
        "rolebindings" => &rbac::Binding { namespaced: true },
        "roles" => &rbac::Role { namespaced: true },
        _ => return None,
    })
}

fn device(resource: &str) -> Found {
    Some(match resource {
        "deviceclasses" => &devices::DeviceClass,
        "devicetaintrules" => &devices::DeviceTaintRule,
        "resourceclaims" => &devices::ResourceClaim,
        "resourceclaimtemplates" => &devices::ResourceClaimTemplate,
        "resourcepoolstatusrequests" => &devices::ResourcePoolStatusRequest,
        "resourceslices" => &devices::ResourceSlice,
        _ => return None,
    })
}

fn volume(resource: &str) -> Found {
    Some(match resource {
        "csidrivers" => &storage::CsiDriver,
        "csinodes" => &storage::CsiNode,
        "csistoragecapacities" => &storage::CsiStorageCapacity,
        "storageclasses" => &storage::StorageClass,
        "volumeattachments" => &storage::VolumeAttachment,
        "volumeattributesclasses" => &storage::VolumeAttributesClass,
        _ => return None,
    })
}

fn other(group: &str, resource: &str) -> Found {
    Some(match (group, resource) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => &servers::DEFINITIONS,
        ("apiregistration.k8s.io", "apiservices") => &apiregistration::ApiService,
        ("authentication.k8s.io", "selfsubjectreviews" | "tokenreviews") => &servers::PLAIN_REVIEW,
        ("authorization.k8s.io", "selfsubjectaccessreviews" | "subjectaccessreviews") => {
            &servers::ACCESS_REVIEW
        }
        ("authorization.k8s.io", "localsubjectaccessreviews") => &servers::LOCAL_ACCESS_REVIEW,
        ("authorization.k8s.io", "selfsubjectrulesreviews") => &servers::PLAIN_REVIEW,
        ("autoscaling", "horizontalpodautoscalers") => &autoscaling::HorizontalPodAutoscaler,
        ("coordination.k8s.io", "leases") => &coordination::Lease,
        ("coordination.k8s.io", "leasecandidates") => &coordination::LeaseCandidate,
        ("discovery.k8s.io", "endpointslices") => &endpoints::EndpointSlice,
        ("events.k8s.io", "events") => &event::Event,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &flowcontrol::FlowSchema,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => &flowcontrol::PriorityLevel,
        ("internal.apiserver.k8s.io", "storageversions") => &servers::StorageVersion,
        ("node.k8s.io", "runtimeclasses") => &scheduling::RuntimeClass,
        ("policy", "poddisruptionbudgets") => &scheduling::PodDisruptionBudget,
        ("scheduling.k8s.io", "priorityclasses") => &scheduling::PriorityClass,
        ("scheduling.k8s.io", "podgroups") => &scheduling::POD_GROUPS,
        ("scheduling.k8s.io", "workloads") => &scheduling::WORKLOADS,
        ("storagemigration.k8s.io", "storageversionmigrations") => &servers::StorageVersionMigration,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::strategy;
    use crate::Scope;

    /// What a Kubernetes 1.36 server discovers; an asterisk marks cluster scope.
    const DISCOVERED: &str = "
        : bindings componentstatuses* configmaps endpoints events limitranges namespaces* nodes* persistentvolumeclaims persistentvolumes* pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services
        admissionregistration.k8s.io: mutatingadmissionpolicies* mutatingadmissionpolicybindings* mutatingwebhookconfigurations* validatingadmissionpolicies* validatingadmissionpolicybindings* validatingwebhookconfigurations*
        apiextensions.k8s.io: customresourcedefinitions*
        apiregistration.k8s.io: apiservices*
        apps: controllerrevisions daemonsets deployments replicasets statefulsets
        authentication.k8s.io: selfsubjectreviews* tokenreviews*
        authorization.k8s.io: localsubjectaccessreviews selfsubjectaccessreviews* selfsubjectrulesreviews* subjectaccessreviews*
        autoscaling: horizontalpodautoscalers
        batch: cronjobs jobs
        certificates.k8s.io: certificatesigningrequests* clustertrustbundles* podcertificaterequests
        coordination.k8s.io: leasecandidates leases
        discovery.k8s.io: endpointslices
        events.k8s.io: events
        flowcontrol.apiserver.k8s.io: flowschemas* prioritylevelconfigurations*
        internal.apiserver.k8s.io: storageversions*
        networking.k8s.io: ingressclasses* ingresses ipaddresses* networkpolicies servicecidrs*
        node.k8s.io: runtimeclasses*
        policy: poddisruptionbudgets
        rbac.authorization.k8s.io: clusterrolebindings* clusterroles* rolebindings roles
        resource.k8s.io: deviceclasses* devicetaintrules* resourceclaims resourceclaimtemplates resourcepoolstatusrequests* resourceslices*
        scheduling.k8s.io: podgroups priorityclasses* workloads
        storage.k8s.io: csidrivers* csinodes* csistoragecapacities storageclasses* volumeattachments* volumeattributesclasses*
        storagemigration.k8s.io: storageversionmigrations*";

    #[test]
    fn no_kind_is_missing() {
        let mut count = 0;
        for line in DISCOVERED.lines().filter(|line| !line.trim().is_empty()) {
            let (group, resources) = line.split_once(':').unwrap();
            for resource in resources.split_whitespace() {
                let name = resource.trim_end_matches('*');
                let expected = if name == resource {
                    Scope::Namespaced
                } else {
                    Scope::Cluster
                };
                let found = strategy(group.trim(), name).profile().scope;
                assert_eq!(found, expected, "{group}/{resource}");
                count += 1;
            }
        }
        assert_eq!(count, 76);
        assert_eq!(
            strategy("example.com", "widgets").profile().scope,
            Scope::AsRequested
        );
    }
}
