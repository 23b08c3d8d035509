//! Labels, annotations and finalizers by which objects talk to each other. Those of CDI and Kubernetes are spelled as theirs.

/// CDI's label on what it made.
pub(crate) const CDI_LABEL: (&str, &str) = ("app", "containerized-data-importer");
/// Claims whose file system is always full are none to warn of.
pub(crate) const NO_FILLING_UP_ALERT: (&str, &str) =
    ("alerts.k8s.io/KubePersistentVolumeFillingUp", "disabled");

pub(crate) const POD_PHASE: &str = "cdi.kubevirt.io/storage.pod.phase";
pub(crate) const POD_READY: &str = "cdi.kubevirt.io/storage.pod.ready";
pub(crate) const POD_RESTARTS: &str = "cdi.kubevirt.io/storage.pod.restarts";
pub(crate) const POPULATED_FOR: &str = "cdi.kubevirt.io/storage.populatedFor";
pub(crate) const CONTENT_TYPE: &str = "cdi.kubevirt.io/storage.contentType";
pub(crate) const PREALLOCATION: &str = "cdi.kubevirt.io/storage.preallocation.requested";
pub(crate) const CREATED_FOR: &str = "cdi.kubevirt.io/createdForDataVolume";
pub(crate) const IMPORT_SOURCE: &str = "cdi.kubevirt.io/storage.import.source";
pub(crate) const IMPORT_ENDPOINT: &str = "cdi.kubevirt.io/storage.import.endpoint";
pub(crate) const IMPORT_CHECKSUM: &str = "cdi.kubevirt.io/storage.import.checksum";
pub(crate) const UPLOAD_TARGET: &str = "cdi.kubevirt.io/storage.upload.target";
pub(crate) const CLONE_REQUEST: &str = "k8s.io/CloneRequest";
pub(crate) const DELETE_AFTER_COMPLETION: &str = "cdi.kubevirt.io/storage.deleteAfterCompletion";
pub(crate) const ALLOW_ADOPTION: &str = "cdi.kubevirt.io/allowClaimAdoption";

pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
pub(crate) const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
pub(crate) const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
pub(crate) const DEFAULT_VIRT_CLASS: &str = "storageclass.kubevirt.io/is-default-virt-class";
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";

pub(crate) const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
pub(crate) const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
/// Files go before their PersistentVolume does.
pub(crate) const FILES_FINALIZER: &str = "fairway.dev/volume-files";

/// On a claim whose disk is made on another host: since when the control plane has what was sent for it.
pub(crate) const UPLOADED: &str = "fairway.dev/uploaded";
/// On a PersistentVolume: the machine for which the volume was made.
pub(crate) const MACHINE: &str = "fairway.dev/machine";
/// On a PersistentVolume whose claim is gone: until when its files are kept.
pub(crate) const TRASH_UNTIL: &str = "fairway.dev/trash-until";
/// On a PersistentVolume: how much may be read and written in a second, as JSON.
pub(crate) const DISK_LIMITS: &str = fairway_machines_plan::plan::DISK_LIMITS;
/// On a machine, a DataVolume or a claim: how long disks are kept after Git pruned it.
pub(crate) const KEEP_DISKS: &str = "fairway.dev/keep-disks";

/// Annotations of a DataVolume that say nothing about its claim.
pub(crate) const NOT_COPIED: [&str; 4] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "argocd.argoproj.io/tracking-id",
    "kcp.io/cluster",
    POPULATED_FOR,
];

/// On what a DataImportCron made: which.
pub(crate) const CRON: &str = "cdi.kubevirt.io/dataImportCron";
/// Whether it goes with its cron.
pub(crate) const CRON_CLEANUP: &str = "cdi.kubevirt.io/dataImportCron.cleanup";
pub(crate) const DESIRED_DIGEST: &str = "cdi.kubevirt.io/storage.import.sourceDesiredDigest";
pub(crate) const NEXT_CRON_TIME: &str = "cdi.kubevirt.io/storage.import.nextCronTime";
pub(crate) const LAST_CRON_TIME: &str = "cdi.kubevirt.io/storage.import.lastCronTime";
pub(crate) const LAST_USE_TIME: &str = "cdi.kubevirt.io/storage.import.lastUseTime";
pub(crate) const IMMEDIATE_BINDING: &str = "cdi.kubevirt.io/storage.bind.immediate.requested";
/// Labels about the size that suits an image; they go along with it.
pub(crate) const INSTANCETYPE_LABELS: &str = "instancetype.kubevirt.io/";
/// On a DataSource that stands for an image of this host.
pub(crate) const IMAGE: &str = "fairway.dev/image";
pub(crate) const IMAGE_DIGEST: &str = "fairway.dev/image-digest";
