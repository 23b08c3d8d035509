//! Roles about virtual machines: what each part of the control plane of machines may do, and what people may, in the
//! words of KubeVirt and its data importer.
//!
//! People get them through `admin`, `edit` and `view`, which gather them. Rules also name kinds that only the originals
//! serve, so that a role that was copied from there means the same here.

use super::Holder::Group;
use super::{CORE, EVENTS, Grant, READ, READ_WRITE, Role, Rule, on};

const KUBEVIRT: &[&str] = &["kubevirt.io"];
const SUBRESOURCES: &[&str] = &["subresources.kubevirt.io"];
const CDI: &[&str] = &["cdi.kubevirt.io"];
const INSTANCETYPES: &[&str] = &["instancetype.kubevirt.io"];

const GET: &[&str] = &["get"];
const PATCH: &[&str] = &["patch"];
const UPDATE: &[&str] = &["update"];
/// What a controller does with objects that it makes.
const KEEP: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];
/// As [`READ_WRITE`], one by one.
const EDIT: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

const ALL_INSTANCETYPES: &[&str] = &[
    "virtualmachineclusterinstancetypes",
    "virtualmachineclusterpreferences",
    "virtualmachineinstancetypes",
    "virtualmachinepreferences",
];
/// Settings of machines as a whole.
const SETTINGS: Rules<2> = [
    on(READ, KUBEVIRT, &["kubevirts"]),
    on(READ, &["hco.kubevirt.io"], &["hyperconvergeds"]),
];

type Rules<const N: usize> = [Rule; N];

/// The parts of the control plane, each with a service account in `kube-system`.
pub(super) const MACHINE_CONTROLLER_ROLES: &[Role] = &[
    // Makes instances and disks of machines, places instances, follows nodes and moves machines away from them.
    Role {
        name: "system:controller:fairway-machines-engine",
        rules: &[
            on(&["get", "list", "patch", "watch"], KUBEVIRT, &["virtualmachines"]),
            on(PATCH, KUBEVIRT, &["virtualmachines/status"]),
            on(KEEP, KUBEVIRT, &["virtualmachineinstances"]),
            on(KEEP, KUBEVIRT, &["virtualmachineinstancemigrations"]),
            on(PATCH, KUBEVIRT, &["virtualmachineinstancemigrations/status"]),
            SETTINGS[0],
            SETTINGS[1],
            // Says of what they would install that it is there.
            on(PATCH, KUBEVIRT, &["kubevirts/status"]),
            on(PATCH, &["hco.kubevirt.io"], &["hyperconvergeds/status"]),
            on(&["get", "list", "patch", "watch"], CDI, &["cdis"]),
            on(READ, INSTANCETYPES, ALL_INSTANCETYPES),
            // What a machine's size was when it started.
            on(KEEP, &["apps"], &["controllerrevisions"]),
            on(KEEP, CDI, &["datavolumes"]),
            on(READ, CDI, &["datasources"]),
            on(READ, CORE, &["persistentvolumeclaims", "persistentvolumes"]),
            on(READ, &["storage.k8s.io"], &["storageclasses"]),
            on(READ, &["k8s.cni.cncf.io"], &["network-attachment-definitions"]),
            on(READ, CORE, &["namespaces"]),
            on(&["get", "list", "patch", "watch"], CORE, &["nodes"]),
            on(PATCH, CORE, &["nodes/status"]),
            on(READ, &["coordination.k8s.io"], &["leases"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Runs the machines of its host: reads what they are made of, and says how they are.
    Role {
        name: "system:controller:fairway-machines-node",
        rules: &[
            on(&["create", "get", "list", "patch", "watch"], CORE, &["nodes"]),
            on(PATCH, CORE, &["nodes/status"]),
            on(
                &["create", "get", "patch", "update"],
                &["coordination.k8s.io"],
                &["leases"],
            ),
            on(
                &["get", "list", "patch", "watch"],
                KUBEVIRT,
                &["virtualmachineinstances"],
            ),
            on(READ, KUBEVIRT, &["virtualmachineinstancemigrations"]),
            on(PATCH, KUBEVIRT, &["virtualmachineinstancemigrations/status"]),
            SETTINGS[0],
            SETTINGS[1],
            // A disk that moved along with its machine is another node's.
            on(
                &["get", "list", "patch", "watch"],
                CORE,
                &["persistentvolumeclaims", "persistentvolumes"],
            ),
            on(READ, &["k8s.cni.cncf.io"], &["network-attachment-definitions"]),
            // Seeds, and disks that hold the content of objects.
            on(READ, CORE, &["configmaps", "secrets", "serviceaccounts"]),
            on(&["create"], CORE, &["serviceaccounts/token"]),
            // The server's figures are of machines that do not run, too.
            on(&["list"], KUBEVIRT, &["virtualmachines"]),
            on(&["list"], &["snapshot.kubevirt.io"], &["virtualmachinesnapshots"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Keeps what machines are at a moment, and brings them back to it.
    Role {
        name: "system:controller:fairway-machines-snapshots",
        rules: &[
            on(KEEP, KUBEVIRT, &["virtualmachines"]),
            on(PATCH, KUBEVIRT, &["virtualmachines/status"]),
            on(READ, KUBEVIRT, &["virtualmachineinstances"]),
            on(
                KEEP,
                &["snapshot.kubevirt.io"],
                &[
                    "virtualmachinerestores",
                    "virtualmachinesnapshotcontents",
                    "virtualmachinesnapshots",
                ],
            ),
            on(
                PATCH,
                &["snapshot.kubevirt.io"],
                &[
                    "virtualmachinerestores/status",
                    "virtualmachinesnapshotcontents/status",
                    "virtualmachinesnapshots/status",
                ],
            ),
            on(KEEP, &["clone.kubevirt.io"], &["virtualmachineclones"]),
            on(PATCH, &["clone.kubevirt.io"], &["virtualmachineclones/status"]),
            on(KEEP, &["snapshot.storage.k8s.io"], &["volumesnapshots"]),
            on(KEEP, CDI, &["datavolumes"]),
            on(KEEP, CORE, &["persistentvolumeclaims"]),
            on(KEEP, &["apps"], &["controllerrevisions"]),
            on(
                UPDATE,
                SUBRESOURCES,
                &[
                    "virtualmachineinstances/freeze",
                    "virtualmachineinstances/pause",
                    "virtualmachineinstances/unfreeze",
                    "virtualmachineinstances/unpause",
                    "virtualmachines/stop",
                ],
            ),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Fills claims with what DataVolumes ask for.
    Role {
        name: "system:controller:fairway-machines-volumes",
        rules: &[
            on(KEEP, CORE, &["persistentvolumeclaims", "persistentvolumes"]),
            on(
                PATCH,
                CORE,
                &["persistentvolumeclaims/status", "persistentvolumes/status"],
            ),
            on(KEEP, &["storage.k8s.io"], &["storageclasses"]),
            on(READ, &["storage.k8s.io"], &["volumeattributesclasses"]),
            on(
                KEEP,
                CDI,
                &[
                    "cdiconfigs",
                    "cdis",
                    "dataimportcrons",
                    "datasources",
                    "datavolumes",
                    "storageprofiles",
                ],
            ),
            on(PATCH, CDI, &["datavolumes/status"]),
            on(READ, KUBEVIRT, &["virtualmachineinstances", "virtualmachines"]),
            SETTINGS[0],
            SETTINGS[1],
            on(READ, CORE, &["nodes"]),
            // Images that everybody may start from have a namespace of their own.
            on(&["create", "get", "list", "watch"], CORE, &["namespaces"]),
            // Passwords and certificates of servers that disks come from.
            on(GET, CORE, &["configmaps", "secrets"]),
            on(
                KEEP,
                &["snapshot.storage.k8s.io"],
                &[
                    "volumesnapshotclasses",
                    "volumesnapshotcontents",
                    "volumesnapshots",
                ],
            ),
            on(
                PATCH,
                &["snapshot.storage.k8s.io"],
                &["volumesnapshotcontents/status", "volumesnapshots/status"],
            ),
            // Disks of machines that Git pruned are kept as long as their tombstones.
            on(&["list"], &["fairway.dev"], &["tombstones"]),
            // A disk is copied from another namespace only for somebody who may read it there.
            on(&["create"], &["authorization.k8s.io"], &["subjectaccessreviews"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Gives machines addresses, and Services the addresses of machines.
    Role {
        name: "system:controller:fairway-machines-wiring",
        rules: &[
            on(
                &["get", "list", "patch", "watch"],
                KUBEVIRT,
                &["virtualmachineinstances"],
            ),
            on(READ, KUBEVIRT, &["virtualmachines"]),
            SETTINGS[0],
            SETTINGS[1],
            on(READ, CORE, &["namespaces", "nodes", "services"]),
            // Where the tunnel of a node is, and its key.
            on(PATCH, CORE, &["nodes"]),
            on(PATCH, CORE, &["services/status"]),
            on(KEEP, CORE, &["endpoints"]),
            on(KEEP, &["discovery.k8s.io"], &["endpointslices"]),
            on(READ, &["networking.k8s.io"], &["networkpolicies"]),
            // Reservations of addresses.
            on(KEEP, &["networking.k8s.io"], &["ipaddresses"]),
            // Addresses of load balancers, where an operator defines pools of them.
            on(READ, &["metallb.io"], &["ipaddresspools"]),
            on(READ, &["k8s.cni.cncf.io"], &["network-attachment-definitions"]),
            EVENTS,
        ],
        ..Role::NONE
    },
    // Does what people ask of a machine, after the kernel has decided that they may.
    Role {
        name: "system:controller:fairway-machines-subresources",
        rules: &[
            on(
                &["get", "list", "patch", "watch"],
                KUBEVIRT,
                &["virtualmachineinstances", "virtualmachines"],
            ),
            on(PATCH, KUBEVIRT, &["virtualmachines/status"]),
            on(
                &["create", "get", "list"],
                KUBEVIRT,
                &["virtualmachineinstancemigrations"],
            ),
            SETTINGS[0],
            SETTINGS[1],
            on(READ, INSTANCETYPES, ALL_INSTANCETYPES),
            on(READ, &["apps"], &["controllerrevisions"]),
            on(GET, CDI, &["datavolumes"]),
            on(GET, CORE, &["persistentvolumeclaims"]),
            EVENTS,
        ],
        ..Role::NONE
    },
];

const INSTANCE_READ: Rule = on(
    GET,
    SUBRESOURCES,
    &[
        "virtualmachineinstances/console",
        "virtualmachineinstances/filesystemlist",
        "virtualmachineinstances/guestosinfo",
        "virtualmachineinstances/portforward",
        "virtualmachineinstances/sev/fetchcertchain",
        "virtualmachineinstances/sev/querylaunchmeasurement",
        "virtualmachineinstances/usbredir",
        "virtualmachineinstances/userlist",
        "virtualmachineinstances/vnc",
        "virtualmachineinstances/vnc/screenshot",
    ],
);
const INSTANCE_ACT: Rule = on(
    UPDATE,
    SUBRESOURCES,
    &[
        "virtualmachineinstances/addvolume",
        "virtualmachineinstances/freeze",
        "virtualmachineinstances/pause",
        "virtualmachineinstances/removevolume",
        "virtualmachineinstances/reset",
        "virtualmachineinstances/sev/injectlaunchsecret",
        "virtualmachineinstances/sev/setupsession",
        "virtualmachineinstances/softreboot",
        "virtualmachineinstances/unfreeze",
        "virtualmachineinstances/unpause",
    ],
);
/// Who gets a backup gets everything that is on the disks. Fairway's own.
const INSTANCE_BACKUP: Rule = on(
    &["get", "update"],
    SUBRESOURCES,
    &["virtualmachineinstances/backup"],
);
const MACHINE_READ: Rule = on(
    GET,
    SUBRESOURCES,
    &["virtualmachines/expand-spec", "virtualmachines/portforward"],
);
const MACHINE_ACT: Rule = on(
    UPDATE,
    SUBRESOURCES,
    &[
        "virtualmachines/addvolume",
        "virtualmachines/memorydump",
        "virtualmachines/removevolume",
        "virtualmachines/restart",
        "virtualmachines/start",
        "virtualmachines/stop",
    ],
);
const EXPAND: Rule = on(UPDATE, SUBRESOURCES, &["expand-vm-spec"]);
const READ_POLICIES: Rule = on(READ, &["migrations.kubevirt.io"], &["migrationpolicies"]);
const READ_SETTINGS: Rule = on(&["get", "list"], KUBEVIRT, &["kubevirts"]);
const READ_MIGRATIONS: Rule = on(READ, KUBEVIRT, &["virtualmachineinstancemigrations"]);

/// The kinds that people make, with these verbs.
const fn own_kinds(verbs: &'static [&'static str]) -> Rules<6> {
    [
        on(
            verbs,
            KUBEVIRT,
            &[
                "virtualmachineinstancepresets",
                "virtualmachineinstancereplicasets",
                "virtualmachineinstances",
                "virtualmachines",
            ],
        ),
        on(
            verbs,
            &["snapshot.kubevirt.io"],
            &[
                "virtualmachinerestores",
                "virtualmachinesnapshotcontents",
                "virtualmachinesnapshots",
            ],
        ),
        on(verbs, &["export.kubevirt.io"], &["virtualmachineexports"]),
        on(verbs, &["clone.kubevirt.io"], &["virtualmachineclones"]),
        on(verbs, INSTANCETYPES, ALL_INSTANCETYPES),
        on(verbs, &["pool.kubevirt.io"], &["virtualmachinepools"]),
    ]
}

const ADMIN_KINDS: Rules<6> = own_kinds(READ_WRITE);
const EDIT_KINDS: Rules<6> = own_kinds(EDIT);
const VIEW_KINDS: Rules<6> = own_kinds(READ);

const CDI_EDIT: &[Rule] = &[
    on(
        &["*"],
        CDI,
        &[
            "dataimportcrons",
            "datasources",
            "datavolumes",
            "volumeclonesources",
            "volumeimportsources",
            "volumeuploadsources",
        ],
    ),
    on(&["create"], CDI, &["datavolumes/source"]),
    on(&["*"], &["upload.cdi.kubevirt.io"], &["uploadtokenrequests"]),
];

/// What people are given.
pub(super) const MACHINE_ROLES: &[Role] = &[
    Role {
        name: "cdi.kubevirt.io:admin",
        aggregates_to: Some("admin"),
        rules: CDI_EDIT,
        ..Role::NONE
    },
    Role {
        name: "cdi.kubevirt.io:config-reader",
        rules: &[on(READ, CDI, &["cdiconfigs", "storageprofiles"])],
        ..Role::NONE
    },
    Role {
        name: "cdi.kubevirt.io:edit",
        aggregates_to: Some("edit"),
        rules: CDI_EDIT,
        ..Role::NONE
    },
    Role {
        name: "cdi.kubevirt.io:view",
        aggregates_to: Some("view"),
        rules: &[
            on(
                READ,
                CDI,
                &[
                    "cdiconfigs",
                    "dataimportcrons",
                    "datasources",
                    "datavolumes",
                    "objecttransfers",
                    "storageprofiles",
                    "volumeclonesources",
                    "volumeimportsources",
                    "volumeuploadsources",
                ],
            ),
            on(&["create"], CDI, &["datavolumes/source"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "instancetype.kubevirt.io:view",
        rules: &[on(
            READ,
            INSTANCETYPES,
            &[
                "virtualmachineclusterinstancetypes",
                "virtualmachineclusterpreferences",
            ],
        )],
        ..Role::NONE
    },
    Role {
        name: "kubevirt.io:admin",
        aggregates_to: Some("admin"),
        rules: &[
            INSTANCE_READ,
            INSTANCE_ACT,
            INSTANCE_BACKUP,
            MACHINE_READ,
            MACHINE_ACT,
            EXPAND,
            ADMIN_KINDS[0],
            READ_MIGRATIONS,
            ADMIN_KINDS[1],
            ADMIN_KINDS[2],
            ADMIN_KINDS[3],
            ADMIN_KINDS[4],
            ADMIN_KINDS[5],
            READ_POLICIES,
        ],
        ..Role::NONE
    },
    Role {
        name: "kubevirt.io:default",
        rules: &[
            READ_SETTINGS,
            on(&["get", "list"], SUBRESOURCES, &["guestfs", "version"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "kubevirt.io:edit",
        aggregates_to: Some("edit"),
        rules: &[
            INSTANCE_READ,
            INSTANCE_ACT,
            INSTANCE_BACKUP,
            MACHINE_READ,
            MACHINE_ACT,
            EXPAND,
            EDIT_KINDS[0],
            READ_MIGRATIONS,
            EDIT_KINDS[1],
            EDIT_KINDS[2],
            EDIT_KINDS[3],
            EDIT_KINDS[4],
            EDIT_KINDS[5],
            READ_SETTINGS,
            READ_POLICIES,
        ],
        ..Role::NONE
    },
    // Not gathered: to move machines between nodes is for whoever looks after the nodes.
    Role {
        name: "kubevirt.io:migrate",
        rules: &[
            on(UPDATE, SUBRESOURCES, &["virtualmachines/migrate"]),
            on(READ_WRITE, KUBEVIRT, &["virtualmachineinstancemigrations"]),
        ],
        ..Role::NONE
    },
    Role {
        name: "kubevirt.io:view",
        aggregates_to: Some("view"),
        rules: &[
            READ_SETTINGS,
            on(
                GET,
                SUBRESOURCES,
                &[
                    "virtualmachineinstances/filesystemlist",
                    "virtualmachineinstances/guestosinfo",
                    "virtualmachineinstances/sev/fetchcertchain",
                    "virtualmachineinstances/sev/querylaunchmeasurement",
                    "virtualmachineinstances/userlist",
                    "virtualmachines/expand-spec",
                ],
            ),
            EXPAND,
            VIEW_KINDS[0],
            READ_MIGRATIONS,
            VIEW_KINDS[1],
            VIEW_KINDS[2],
            VIEW_KINDS[3],
            VIEW_KINDS[4],
            VIEW_KINDS[5],
            READ_POLICIES,
        ],
        ..Role::NONE
    },
];

/// What everybody with a name may do.
pub(super) const MACHINE_GRANTS: &[Grant] = &[
    everybody("cdi.kubevirt.io:config-reader"),
    everybody("instancetype.kubevirt.io:view"),
    everybody("kubevirt.io:default"),
];

const fn everybody(role: &'static str) -> Grant {
    Grant {
        name: role,
        role,
        subjects: &[Group("system:authenticated")],
        ..Grant::NONE
    }
}
