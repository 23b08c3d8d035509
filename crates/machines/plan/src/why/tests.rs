//! Facts in, the chain as people see it out.
// tidy: long: a table of machines and what is said of them

use expect_test::{Expect, expect};
use fairway_text_yaml as yaml;
use serde_json::Value;

use super::*;

/// Facts from YAML: objects by the names of the fields; lists that are not there cannot be read.
fn facts(text: &str) -> Facts {
    let all: Value = yaml::from_str(text, yaml::Limits::default()).unwrap();
    let list = |name: &str| all[name].as_array().cloned();
    let object = |name: &str| all.get(name).filter(|it| it.is_object()).cloned();
    Facts {
        namespace: "vms".to_owned(),
        name: "web".to_owned(),
        vm: object("vm"),
        vmi: object("vmi"),
        data_volumes: list("dataVolumes"),
        claims: list("claims"),
        data_sources: list("dataSources"),
        nodes: list("nodes"),
        services: list("services"),
        endpoint_slices: list("slices"),
        events: list("events").unwrap_or_default(),
        console: all["console"].as_str().map(str::to_owned),
    }
}

fn check(given: &str, expected: &Expect) {
    expected.assert_eq(&text(&facts(given)));
}

const VM: &str = "
vm:
  metadata: {name: web}
  spec:
    runStrategy: Always
    dataVolumeTemplates: [{metadata: {name: web-root}}]
    template: {spec: {volumes: [{name: root, dataVolume: {name: web-root}}]}}
  status: {printableStatus: Provisioning}
";
const HEALTHY: &str = "
vm: {metadata: {name: web}, spec: {runStrategy: Always}, status: {printableStatus: Running}}
vmi:
  metadata: {name: web, labels: {app: web}}
  spec:
    networks: [{name: default, pod: {}}]
    volumes: [{name: root, dataVolume: {name: web-root}}, {name: seed, cloudInitNoCloud: {userData: x}}]
  status:
    phase: Running
    nodeName: n1
    interfaces: [{name: default, ipAddress: 10.88.0.7}]
    conditions: [{type: Ready, status: 'True'}]
dataVolumes: [{metadata: {name: web-root}, status: {phase: Succeeded}}]
claims: [{metadata: {name: web-root}, status: {phase: Bound}}]
nodes: [{metadata: {name: n1}, status: {conditions: [{type: Ready, status: 'True'}]}}]
services: [{metadata: {name: web}, spec: {selector: {app: web}}}]
slices:
- metadata: {labels: {kubernetes.io/service-name: web}}
  endpoints: [{addresses: [10.88.0.7], conditions: {ready: true}}]
";

/// A healthy machine in which something was changed.
fn changed(from: &str, to: &str) -> String {
    assert!(HEALTHY.contains(from), "{from}");
    HEALTHY.replace(from, to)
}

#[test]
fn a_machine_that_is_well() {
    let console = "console: |\n  [    2.1] systemd[1]: Started.\n  Cloud-init v. 22.4.2 finished at now. Up 21 seconds\n  web login: \n";
    check(
        &format!("{HEALTHY}{console}"),
        &expect![[r#"
        VirtualMachine  ok       Running, runStrategy Always
        DataVolume      ok       web-root Succeeded
        claim           ok       web-root Bound
        image           ok       disks have their content
        scheduling      ok       on node n1
        QEMU            ok       running
        boot            ok       it asks for a login
        cloud-init      ok       finished
        Service         ok       web to 10.88.0.7

        vms/web: every link holds
    "#]],
    );
}

#[test]
fn nothing_of_that_name() {
    check(
        "{}",
        &expect![[r#"
        VirtualMachine  BROKEN   there is no VirtualMachine "web" in namespace "vms"

        vms/web: the first broken link is VirtualMachine: there is no VirtualMachine "web" in namespace "vms"
          > check name, namespace (-n) and workspace (-w): `fairway vm list -A` shows all
    "#]],
    );
}

#[test]
fn machines_that_are_off() {
    let vm = "vm: {metadata: {name: web}, spec: {runStrategy: Halted}, status: {printableStatus: Stopped}}";
    check(
        vm,
        &expect![[r#"
        VirtualMachine  off      it is stopped, because its runStrategy is Halted

        vms/web: nothing is broken: it is stopped, because its runStrategy is Halted
          > `fairway vm start web` starts it
    "#]],
    );
    check(
        &vm.replace("Halted", "Manual"),
        &expect![[r#"
        VirtualMachine  off      it is stopped, because its runStrategy is Manual and nobody has started it

        vms/web: nothing is broken: it is stopped, because its runStrategy is Manual and nobody has started it
          > `fairway vm start web` starts it
    "#]],
    );
    check(
        &vm.replace("Halted", "Once"),
        &expect![[r#"
        VirtualMachine  off      it is stopped: its guest ended, and its runStrategy does not start it again

        vms/web: nothing is broken: it is stopped: its guest ended, and its runStrategy does not start it again
          > `fairway vm start web` starts it
    "#]],
    );
    let paused =
        "conditions: [{type: Paused, status: 'True', reason: PausedByUser, message: VMI was paused by user}]";
    check(
        &changed(
            "conditions: [{type: Ready, status: 'True'}]\ndata",
            &format!("{paused}\ndata"),
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            off      it is paused: VMI was paused by user

            vms/web: nothing is broken: it is paused: VMI was paused by user
              | condition Paused=True (PausedByUser): VMI was paused by user
              > `fairway vm unpause web` lets it run
        "#]],
    );
    check(
        &changed("phase: Running", "phase: Succeeded"),
        &expect![[r#"
        VirtualMachine  ok       Running, runStrategy Always
        DataVolume      ok       web-root Succeeded
        claim           ok       web-root Bound
        image           ok       disks have their content
        scheduling      ok       on node n1
        QEMU            off      its guest shut itself down

        vms/web: nothing is broken: its guest shut itself down
          > `fairway vm start web` starts it again
    "#]],
    );
}

#[test]
fn starts_that_fail() {
    let vm = "
vm:
  metadata: {name: web}
  spec: {runStrategy: Always}
  status:
    printableStatus: CrashLoopBackOff
    startFailure: {consecutiveFailCount: 3, retryAfterTimestamp: '2026-01-01T00:00:30Z'}
events:
- {type: Warning, reason: Failed, message: older, lastTimestamp: '2026-01-01T00:00:00Z', involvedObject: {kind: VirtualMachineInstance, name: web}}
- {type: Warning, reason: Failed, message: QEMU ended with code 1, lastTimestamp: '2026-01-01T00:00:10Z', involvedObject: {kind: VirtualMachineInstance, name: web}}
- {type: Normal, reason: Created, message: x, involvedObject: {kind: VirtualMachine, name: web}}
";
    check(
        vm,
        &expect![[r#"
        VirtualMachine  BROKEN   it failed to start 3 times in a row, and is tried again after 2026-01-01T00:00:30Z

        vms/web: the first broken link is VirtualMachine: it failed to start 3 times in a row, and is tried again after 2026-01-01T00:00:30Z
          | event Failed: QEMU ended with code 1
          | event Failed: older
          > `fairway vm start web` tries at once
    "#]],
    );
    let refused = "
vm:
  metadata: {name: web}
  spec: {runStrategy: Always}
  status:
    printableStatus: Stopped
    conditions: [{type: Failure, status: 'True', reason: FailedCreate, message: 'exceeded quota: cpu'}]
";
    check(
        refused,
        &expect![[r#"
        VirtualMachine  BROKEN   no instance could be started: exceeded quota: cpu

        vms/web: the first broken link is VirtualMachine: no instance could be started: exceeded quota: cpu
          | condition Failure=True (FailedCreate): exceeded quota: cpu
    "#]],
    );
}

#[test]
fn disks() {
    check(
        &format!("{VM}dataVolumes: []\nclaims: []\n"),
        &expect![[r#"
        VirtualMachine  ok       Provisioning, runStrategy Always
        DataVolume      waiting  web-root of a template is not there yet

        vms/web: nothing is broken; DataVolume is not done yet: web-root of a template is not there yet
    "#]],
    );
    let no_template = VM.replace("    dataVolumeTemplates: [{metadata: {name: web-root}}]\n", "");
    check(
        &format!("{no_template}dataVolumes: []\nclaims: []\n"),
        &expect![[r#"
            VirtualMachine  ok       Provisioning, runStrategy Always
            DataVolume      BROKEN   the machine names the DataVolume "web-root", which does not exist

            vms/web: the first broken link is DataVolume: the machine names the DataVolume "web-root", which does not exist
              > create it, or correct the name in spec.template.spec.volumes
        "#]],
    );
    let importing = "dataVolumes: [{metadata: {name: web-root}, status: {phase: ImportInProgress, progress: 41.2%}}]\nclaims: []\n";
    check(
        &format!("{VM}{importing}"),
        &expect![[r#"
        VirtualMachine  ok       Provisioning, runStrategy Always
        DataVolume      ok       web-root ImportInProgress
        claim           ok       web-root is not there yet
        image           waiting  web-root is being filled: ImportInProgress, 41.2%

        vms/web: nothing is broken; image is not done yet: web-root is being filled: ImportInProgress, 41.2%
    "#]],
    );
    let failing = "
dataVolumes:
- metadata: {name: web-root, namespace: vms}
  status:
    phase: ImportInProgress
    restartCount: 2
    conditions: [{type: Running, status: 'False', reason: Error, message: 'GET http://x/disk.qcow2: 404 Not Found'}]
claims: [{metadata: {name: web-root}, status: {phase: Pending}}]
";
    check(
        &format!("{VM}{failing}"),
        &expect![[r#"
        VirtualMachine  ok       Provisioning, runStrategy Always
        DataVolume      ok       web-root ImportInProgress
        claim           ok       web-root is being filled
        image           BROKEN   filling web-root fails: GET http://x/disk.qcow2: 404 Not Found

        vms/web: the first broken link is image: filling web-root fails: GET http://x/disk.qcow2: 404 Not Found
          | phase ImportInProgress, tried 3 times
          | condition Running=False (Error): GET http://x/disk.qcow2: 404 Not Found
    "#]],
    );
    let source = "
dataVolumes:
- metadata: {name: web-root, namespace: vms}
  spec: {sourceRef: {kind: DataSource, name: tinny, namespace: fairway-images}}
  status: {phase: Pending}
claims: []
dataSources: []
";
    check(
        &format!("{VM}{source}"),
        &expect![[r#"
        VirtualMachine  ok       Provisioning, runStrategy Always
        DataVolume      ok       web-root Pending
        claim           ok       web-root is not there yet
        image           BROKEN   the DataVolume web-root is to be filled from the DataSource fairway-images/tinny, which does not exist

        vms/web: the first broken link is image: the DataVolume web-root is to be filled from the DataSource fairway-images/tinny, which does not exist
          > `fairway image list` and `kubectl get datasources -A` show what there is
    "#]],
    );
    let claim = "
dataVolumes: [{metadata: {name: web-root}, status: {phase: Succeeded}}]
claims: [{metadata: {name: web-root}, status: {phase: Pending}}]
events:
- {type: Warning, reason: ProvisioningFailed, message: no space left on n1, involvedObject: {kind: PersistentVolumeClaim, name: web-root}}
";
    check(
        &format!("{VM}{claim}"),
        &expect![[r#"
        VirtualMachine  ok       Provisioning, runStrategy Always
        DataVolume      ok       web-root Succeeded
        claim           BROKEN   the claim web-root is Pending

        vms/web: the first broken link is claim: the claim web-root is Pending
          | event ProvisioningFailed: no space left on n1
    "#]],
    );
    let forbidden = VM.replace("Provisioning", "Starting");
    check(
        &forbidden,
        &expect![[r#"
            VirtualMachine  ok       Starting, runStrategy Always
            DataVolume      unknown  DataVolumes cannot be read
            claim           unknown  claims cannot be read
            image           unknown  DataVolumes cannot be read
            scheduling      waiting  there is no instance yet

            vms/web: nothing is broken; scheduling is not done yet: there is no instance yet
              > look again in a moment; if that does not change, at the server's log
        "#]],
    );
}

#[test]
fn images_of_containers() {
    let vmi = "
vm: {metadata: {name: web}, spec: {runStrategy: Always}, status: {printableStatus: ErrImagePull}}
vmi:
  metadata: {name: web}
  spec: {volumes: [{name: root, containerDisk: {image: 'registry.example.com/x:1'}}]}
  status:
    phase: Scheduled
    nodeName: n1
    conditions: [{type: Synchronized, status: 'False', reason: ErrImagePull, message: 'registry.example.com: no such host'}]
";
    check(
        vmi,
        &expect![[r#"
        VirtualMachine  ok       ErrImagePull, runStrategy Always
        DataVolume      -        the machine uses none
        claim           -        the machine uses none
        image           BROKEN   a container disk cannot be pulled: registry.example.com: no such host

        vms/web: the first broken link is image: a container disk cannot be pulled: registry.example.com: no such host
          | condition Synchronized=False (ErrImagePull): registry.example.com: no such host
    "#]],
    );
}

#[test]
fn places() {
    let nowhere = changed("nodeName: n1", "nodeName: ''").replace(
        "{type: Ready, status: 'True'}]\ndata",
        "{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/1 nodes are available: 1 Insufficient memory.'}]\ndata",
    );
    check(
        &nowhere.replace("phase: Running", "phase: Scheduling"),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      BROKEN   no node takes it: 0/1 nodes are available: 1 Insufficient memory.

            vms/web: the first broken link is scheduling: no node takes it: 0/1 nodes are available: 1 Insufficient memory.
              | condition PodScheduled=False (Unschedulable): 0/1 nodes are available: 1 Insufficient memory.
              > `kubectl describe nodes` shows what nodes have left, their labels and their taints
        "#]],
    );
    let lost = changed(
        "conditions: [{type: Ready, status: 'True'}]}}]\nservices",
        "conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: its lease has expired}]}}]\nservices",
    );
    check(
        &lost,
        &expect![[r#"
        VirtualMachine  ok       Running, runStrategy Always
        DataVolume      ok       web-root Succeeded
        claim           ok       web-root Bound
        image           ok       disks have their content
        scheduling      BROKEN   its node n1 is not ready: its lease has expired

        vms/web: the first broken link is scheduling: its node n1 is not ready: its lease has expired
          | condition Ready=Unknown (NodeStatusUnknown): its lease has expired
    "#]],
    );
    check(
        &changed("{metadata: {name: n1}", "{metadata: {name: n2}"),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      BROKEN   its node n1 does not exist any more

            vms/web: the first broken link is scheduling: its node n1 does not exist any more
              > when the node is lost for good, its machines start elsewhere after its lease has expired
        "#]],
    );
}

#[test]
fn processes() {
    let seed = changed("phase: Running", "phase: Scheduled").replace(
        "{type: Ready, status: 'True'}]\ndata",
        "{type: Synchronized, status: 'False', reason: FailedCreate, message: the Secret keys does not exist}]\ndata",
    );
    check(
        &seed,
        &expect![[r#"
        VirtualMachine  ok       Running, runStrategy Always
        DataVolume      ok       web-root Succeeded
        claim           ok       web-root Bound
        image           ok       disks have their content
        scheduling      ok       on node n1
        QEMU            BROKEN   it cannot be started: the Secret keys does not exist

        vms/web: the first broken link is QEMU: it cannot be started: the Secret keys does not exist
          | condition Synchronized=False (FailedCreate): the Secret keys does not exist
    "#]],
    );
    let io = "conditions: [{type: Paused, status: 'True', reason: PausedIOError, message: 'VMI was paused, low-level IO error detected'}]";
    check(
        &changed(
            "conditions: [{type: Ready, status: 'True'}]\ndata",
            &format!("{io}\ndata"),
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            BROKEN   it is paused: VMI was paused, low-level IO error detected

            vms/web: the first broken link is QEMU: it is paused: VMI was paused, low-level IO error detected
              | condition Paused=True (PausedIOError): VMI was paused, low-level IO error detected
              > look at the disk of its node: a full or failing one stops a guest that writes
        "#]],
    );
    check(
        &format!(
            "{}console: \"\\u001b[1;31mqemu: out of memory\\u001b[0m\\r\\n\"\n",
            changed("phase: Running", "phase: Failed")
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            BROKEN   its process failed

            vms/web: the first broken link is QEMU: its process failed
              | console: qemu: out of memory
        "#]],
    );
}

#[test]
fn boots() {
    let with = |console: &str| format!("{HEALTHY}console: {}\n", Value::from(console));
    check(
        &with("SeaBIOS\r\nBooting from Hard Disk...\r\nBoot failed: not a bootable disk\r\n"),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            BROKEN   the firmware found nothing to boot from

            vms/web: the first broken link is boot: the firmware found nothing to boot from
              | console: SeaBIOS
              | console: Booting from Hard Disk...
              | console: Boot failed: not a bootable disk
              > `fairway vm console web` shows the rest
        "#]],
    );
    check(
        &with(
            "[    1.0] VFS: Unable to mount root fs on unknown-block(0,0)\r\n[    1.1] Kernel panic - not syncing: VFS\r\n",
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            BROKEN   the guest's kernel found no root file system

            vms/web: the first broken link is boot: the guest's kernel found no root file system
              | console: [    1.0] VFS: Unable to mount root fs on unknown-block(0,0)
              | console: [    1.1] Kernel panic - not syncing: VFS
              > `fairway vm console web` shows the rest
        "#]],
    );
    check(
        &with("Loading Linux 6.1 ...\r\nLoading initial ramdisk ...\r\n"),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            waiting  it has not come to a login yet

            vms/web: nothing is broken; boot is not done yet: it has not come to a login yet
              | console: Loading Linux 6.1 ...
              | console: Loading initial ramdisk ...
        "#]],
    );
    // A guest that came up after it had once panicked.
    check(
        &with("Kernel panic - not syncing\r\nsystemd[1]: hello\r\nweb login: "),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      unknown  its console says nothing of it
            Service         ok       web to 10.88.0.7

            vms/web: no link is broken; not known: cloud-init
        "#]],
    );
    check(
        HEALTHY,
        &expect![[r#"
        VirtualMachine  ok       Running, runStrategy Always
        DataVolume      ok       web-root Succeeded
        claim           ok       web-root Bound
        image           ok       disks have their content
        scheduling      ok       on node n1
        QEMU            ok       running
        boot            unknown  its console cannot be read, and it has no agent
        cloud-init      unknown  its console cannot be read
        Service         ok       web to 10.88.0.7

        vms/web: no link is broken; not known: boot, cloud-init
    "#]],
    );
}

#[test]
fn seeds() {
    let with = |console: &str| format!("{HEALTHY}console: {}\n", Value::from(console));
    check(
        &with(
            "cloud-init: packages: this guest has no package manager\r\ncloud-init: finished, status: error\r\nweb login: ",
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      BROKEN   packages: this guest has no package manager

            vms/web: the first broken link is cloud-init: packages: this guest has no package manager
              | console: cloud-init: packages: this guest has no package manager
              | console: cloud-init: finished, status: error
              > correct the user data of the volume seed; in the guest, `cloud-init status --long` and /var/log/cloud-init-output.log tell more
        "#]],
    );
    check(
        &with(
            "[   30.1] cloud-init[321]: 2026-01-01 00:00:00,1 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user\r\nweb login: ",
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      BROKEN   2026-01-01 00:00:00,1 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user

            vms/web: the first broken link is cloud-init: 2026-01-01 00:00:00,1 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user
              | console: [   30.1] cloud-init[321]: 2026-01-01 00:00:00,1 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user
              > correct the user data of the volume seed; in the guest, `cloud-init status --long` and /var/log/cloud-init-output.log tell more
        "#]],
    );
    check(
        &with("[   30.1] cloud-init[321]: Cloud-init v. 22.4.2 running 'modules:config'\r\nweb login: "),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      waiting  it is not through yet

            vms/web: nothing is broken; cloud-init is not done yet: it is not through yet
              | console: [   30.1] cloud-init[321]: Cloud-init v. 22.4.2 running 'modules:config'
        "#]],
    );
}

#[test]
fn networks() {
    let console = "console: 'cloud-init: finished, status: done, web login:'\n";
    let unready = changed("conditions: {ready: true}", "conditions: {ready: false}").replace(
        "{type: Ready, status: 'True'}]\ndata",
        "{type: Ready, status: 'False', reason: ContainersNotReady, message: the readiness probe has not succeeded}]\ndata",
    );
    check(
        &format!("{unready}{console}"),
        &expect![[r#"
        VirtualMachine  ok       Running, runStrategy Always
        DataVolume      ok       web-root Succeeded
        claim           ok       web-root Bound
        image           ok       disks have their content
        scheduling      ok       on node n1
        QEMU            ok       running
        boot            ok       it asks for a login
        cloud-init      ok       finished
        Service         BROKEN   the Service web does not lead to 10.88.0.7, because the machine is not ready

        vms/web: the first broken link is Service: the Service web does not lead to 10.88.0.7, because the machine is not ready
          | condition Ready=False (ContainersNotReady): the readiness probe has not succeeded
          > its readiness probe decides: check the port and what listens there in the guest
    "#]],
    );
    check(
        &format!(
            "{}{console}",
            changed("selector: {app: web}", "selector: {app: shop}")
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      ok       finished
            Service         BROKEN   at 10.88.0.7; the Service web selects other labels

            vms/web: the first broken link is Service: at 10.88.0.7; the Service web selects other labels
              | selector app=shop
              | labels of the instance app=web
              > labels of instances come from spec.template.metadata.labels of the machine
        "#]],
    );
    // As `expose` makes it: by a label of the pod that KubeVirt would have made.
    check(
        &format!(
            "{}{console}",
            changed(
                "selector: {app: web}",
                "selector: {vm.kubevirt.io/name: web, kubevirt.io: virt-launcher}"
            )
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      ok       finished
            Service         ok       web to 10.88.0.7

            vms/web: every link holds
        "#]],
    );
    check(
        &format!("{}{console}", changed("ipAddress: 10.88.0.7", "mac: x")),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      ok       finished
            Service         BROKEN   the machine has no address

            vms/web: the first broken link is Service: the machine has no address
              > look at the interfaces in its status, and at the log of its node
        "#]],
    );
    check(
        &format!(
            "{}{console}",
            changed("addresses: [10.88.0.7]", "addresses: [10.88.0.8]")
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      ok       finished
            Service         waiting  the Service web does not lead to 10.88.0.7 yet

            vms/web: nothing is broken; Service is not done yet: the Service web does not lead to 10.88.0.7 yet
        "#]],
    );
    check(
        &format!(
            "{}{console}",
            changed(
                "services: [{metadata: {name: web}, spec: {selector: {app: web}}}]",
                "services: []"
            )
        ),
        &expect![[r#"
            VirtualMachine  ok       Running, runStrategy Always
            DataVolume      ok       web-root Succeeded
            claim           ok       web-root Bound
            image           ok       disks have their content
            scheduling      ok       on node n1
            QEMU            ok       running
            boot            ok       it asks for a login
            cloud-init      ok       finished
            Service         -        at 10.88.0.7; no Service selects it

            vms/web: every link holds
        "#]],
    );
}
