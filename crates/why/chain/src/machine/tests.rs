//! Facts in, the chain of a machine as people see it out.
// tidy: long: a table of machines and what is said of them

use expect_test::{Expect, expect};
use fairway_text_yaml as yaml;
use serde_json::Value;

use crate::*;

/// Facts from YAML: objects by the names of the fields; lists that are not there cannot be read.
fn facts(given: &str) -> Facts {
    let all: Value = yaml::from_str(given, yaml::Limits::default()).unwrap();
    let list = |name: &str| all[name].as_array().cloned();
    let object = |name: &str| all.get(name).filter(|it| it.is_object()).cloned();
    Facts {
        asked: Subject {
            kind: "VirtualMachine".to_owned(),
            namespace: "vms".to_owned(),
            name: "web".to_owned(),
        },
        machines: vec![Machine {
            name: "web".to_owned(),
            vm: object("vm"),
            vmi: object("vmi"),
            data_volumes: list("dataVolumes"),
            claims: list("claims"),
            data_sources: list("dataSources"),
            nodes: list("nodes"),
            events: list("events").unwrap_or_default(),
            console: all["console"].as_str().map(str::to_owned),
            cloud_init: object("cloudInit"),
            ..Machine::default()
        }],
        services: list("services").unwrap_or_default(),
        endpoint_slices: list("slices").unwrap_or_default(),
        ..Facts::default()
    }
}

fn check(given: &str, expected: &Expect) {
    expected.assert_eq(&shown(given));
}

/// The links from scheduling on, and the verdict.
fn shown(given: &str) -> String {
    let all = text(&report(&facts(given)));
    let lines = all.lines().skip(6).map(|it| it.trim_start());
    lines.map(|it| format!("{it}\n")).collect()
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  ok       finished
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: every link holds
        "#]],
    );
}

#[test]
fn nothing_of_that_name() {
    check(
        "{}",
        &expect![[r#"
            scheduling  BROKEN   there is no VirtualMachine /web
            disk        waiting  there is no machine yet
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is scheduling: there is no VirtualMachine /web
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
            scheduling  off      it is stopped, because its runStrategy is Halted
            disk        -        the machine has no disk that is filled or kept
            boot        -        the machine is off
            cloud-init  -        the machine is off
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken: it is stopped, because its runStrategy is Halted
            > `fairway vm start web -n ` starts it
        "#]],
    );
    check(
        &vm.replace("Halted", "Manual"),
        &expect![[r#"
            scheduling  off      it is stopped, because its runStrategy is Manual and nobody has started it
            disk        -        the machine has no disk that is filled or kept
            boot        -        the machine is off
            cloud-init  -        the machine is off
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken: it is stopped, because its runStrategy is Manual and nobody has started it
            > `fairway vm start web -n ` starts it
        "#]],
    );
    check(
        &vm.replace("Halted", "Once"),
        &expect![[r#"
            scheduling  off      it is stopped: its guest ended, and its runStrategy does not start it again
            disk        -        the machine has no disk that is filled or kept
            boot        -        the machine is off
            cloud-init  -        the machine is off
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken: it is stopped: its guest ended, and its runStrategy does not start it again
            > `fairway vm start web -n ` starts it
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        off      it is paused: VMI was paused by user
            cloud-init  unknown  its console cannot be read
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken: it is paused: VMI was paused by user
            | condition Paused=True (PausedByUser) of web: VMI was paused by user
            > `fairway vm unpause web` lets it run
        "#]],
    );
    check(
        &changed("phase: Running", "phase: Succeeded"),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        off      its guest shut itself down
            cloud-init  waiting  the guest does not run
            Service     waiting  web waits for web to run
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken: its guest shut itself down
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
            scheduling  waiting  it is to be started again
            disk        -        the machine has no disk that is filled or kept
            2026-01-01T00:00:10Z  boot        BROKEN   it failed to start 3 times in a row, and is tried again after 2026-01-01T00:00:30Z
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is boot: it failed to start 3 times in a row, and is tried again after 2026-01-01T00:00:30Z
            | event Failed of VirtualMachineInstance web, 2026-01-01T00:00:10Z: QEMU ended with code 1
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
            scheduling  waiting  there is no instance yet
            disk        -        the machine has no disk that is filled or kept
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is admission: what web needs is refused: exceeded quota: cpu
            | condition Failure=True (FailedCreate) of web: exceeded quota: cpu
            > ask for less, delete what is not needed, or have the quota raised: `kubectl describe quota -n NAMESPACE` shows it
        "#]],
    );
}

#[test]
fn disks() {
    check(
        &format!("{VM}dataVolumes: []\nclaims: []\n"),
        &expect![[r#"
            scheduling  waiting  there is no instance yet
            disk        waiting  web-root of a template is not there yet
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken; scheduling is not done yet: there is no instance yet
            > look again in a moment; if that does not change, at the server's log
        "#]],
    );
    let no_template = VM.replace("    dataVolumeTemplates: [{metadata: {name: web-root}}]\n", "");
    check(
        &format!("{no_template}dataVolumes: []\nclaims: []\n"),
        &expect![[r#"
            scheduling  waiting  there is no instance yet
            disk        BROKEN   the machine names the DataVolume "web-root", which does not exist
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is disk: the machine names the DataVolume "web-root", which does not exist
            > create it, or correct the name in spec.template.spec.volumes
        "#]],
    );
    let importing = "dataVolumes: [{metadata: {name: web-root}, status: {phase: ImportInProgress, progress: 41.2%}}]\nclaims: []\n";
    check(
        &format!("{VM}{importing}"),
        &expect![[r#"
            scheduling  waiting  there is no instance yet
            disk        waiting  web-root is being filled: ImportInProgress, 41.2%
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken; scheduling is not done yet: there is no instance yet
            > look again in a moment; if that does not change, at the server's log
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
            scheduling  waiting  there is no instance yet
            disk        BROKEN   filling web-root fails: GET http://x/disk.qcow2: 404 Not Found
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is disk: filling web-root fails: GET http://x/disk.qcow2: 404 Not Found
            | status of DataVolume web-root: phase ImportInProgress, tried 3 times
            | condition Running=False (Error) of DataVolume web-root: GET http://x/disk.qcow2: 404 Not Found
            > correct the source or the size of the DataVolume as the message says, and delete it, so that it is made anew
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
            scheduling  waiting  there is no instance yet
            disk        BROKEN   the DataVolume web-root is to be filled from the DataSource fairway-images/tinny, which does not exist
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is disk: the DataVolume web-root is to be filled from the DataSource fairway-images/tinny, which does not exist
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
            scheduling  waiting  there is no instance yet
            disk        BROKEN   the claim web-root is Pending
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is disk: the claim web-root is Pending
            | event ProvisioningFailed of PersistentVolumeClaim web-root: no space left on n1
        "#]],
    );
    let forbidden = VM.replace("Provisioning", "Starting");
    check(
        &forbidden,
        &expect![[r#"
            scheduling  waiting  there is no instance yet
            disk        unknown  DataVolumes cannot be read
            boot        waiting  there is no instance yet
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken; scheduling is not done yet: there is no instance yet
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
            scheduling  ok       on node n1
            disk        BROKEN   a container disk cannot be pulled: registry.example.com: no such host
            boot        waiting  it waits for a disk
            cloud-init  waiting  the guest does not run
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is disk: a container disk cannot be pulled: registry.example.com: no such host
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
            scheduling  BROKEN   no node takes it: 0/1 nodes are available: 1 Insufficient memory.
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        waiting  it has no node yet
            cloud-init  waiting  the guest does not run
            Service     waiting  web waits for web to run
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is scheduling: no node takes it: 0/1 nodes are available: 1 Insufficient memory.
            | condition PodScheduled=False (Unschedulable) of web: 0/1 nodes are available: 1 Insufficient memory.
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
            scheduling  BROKEN   its node n1 is not ready: its lease has expired
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        unknown  its console cannot be read, and it has no agent
            cloud-init  unknown  its console cannot be read
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is scheduling: its node n1 is not ready: its lease has expired
            | condition Ready=Unknown (NodeStatusUnknown) of Node n1: its lease has expired
            > see why the node does not report: is its process running, does it reach the API?
        "#]],
    );
    check(
        &changed("{metadata: {name: n1}", "{metadata: {name: n2}"),
        &expect![[r#"
            scheduling  BROKEN   its node n1 does not exist any more
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        unknown  its console cannot be read, and it has no agent
            cloud-init  unknown  its console cannot be read
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is scheduling: its node n1 does not exist any more
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        BROKEN   it cannot be started: the Secret keys does not exist
            cloud-init  waiting  the guest does not run
            Service     waiting  web waits for web to run
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is boot: it cannot be started: the Secret keys does not exist
            | condition Synchronized=False (FailedCreate) of web: the Secret keys does not exist
            > create what is missing, or correct its name in the machine
        "#]],
    );
    let io = "conditions: [{type: Paused, status: 'True', reason: PausedIOError, message: 'VMI was paused, low-level IO error detected'}]";
    check(
        &changed(
            "conditions: [{type: Ready, status: 'True'}]\ndata",
            &format!("{io}\ndata"),
        ),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        BROKEN   writing fails, and it is paused: VMI was paused, low-level IO error detected
            boot        waiting  it is paused: VMI was paused, low-level IO error detected
            cloud-init  unknown  its console cannot be read
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is disk: writing fails, and it is paused: VMI was paused, low-level IO error detected
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        BROKEN   its process failed
            cloud-init  waiting  the guest does not run
            Service     waiting  web waits for web to run
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is boot: its process failed
            | console: qemu: out of memory
            > `fairway vm restart web` tries again
        "#]],
    );
}

#[test]
fn boots() {
    let with = |console: &str| format!("{HEALTHY}console: {}\n", Value::from(console));
    check(
        &with("SeaBIOS\r\nBooting from Hard Disk...\r\nBoot failed: not a bootable disk\r\n"),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        BROKEN   the firmware found nothing to boot from
            cloud-init  waiting  the guest has not come to it
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is boot: the firmware found nothing to boot from
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        BROKEN   the guest's kernel found no root file system
            cloud-init  waiting  the guest has not come to it
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is boot: the guest's kernel found no root file system
            | console: [    1.0] VFS: Unable to mount root fs on unknown-block(0,0)
            | console: [    1.1] Kernel panic - not syncing: VFS
            > `fairway vm console web` shows the rest
        "#]],
    );
    check(
        &with("Loading Linux 6.1 ...\r\nLoading initial ramdisk ...\r\n"),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        waiting  it has not come to a login yet
            cloud-init  waiting  the guest has not come to it
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken; boot is not done yet: it has not come to a login yet
            | console: Loading Linux 6.1 ...
            | console: Loading initial ramdisk ...
        "#]],
    );
    // A guest that came up after it had once panicked.
    check(
        &with("Kernel panic - not syncing\r\nsystemd[1]: hello\r\nweb login: "),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  unknown  its console says nothing of it
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: no link is broken; not known: cloud-init
        "#]],
    );
    check(
        HEALTHY,
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        unknown  its console cannot be read, and it has no agent
            cloud-init  unknown  its console cannot be read
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: no link is broken; not known: boot, cloud-init
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  BROKEN   packages: this guest has no package manager
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is cloud-init: packages: this guest has no package manager
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  BROKEN   2026-01-01 00:00:00,1 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is cloud-init: 2026-01-01 00:00:00,1 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user
            | console: [   30.1] cloud-init[321]: 2026-01-01 00:00:00,1 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user
            > correct the user data of the volume seed; in the guest, `cloud-init status --long` and /var/log/cloud-init-output.log tell more
        "#]],
    );
    check(
        &with("[   30.1] cloud-init[321]: Cloud-init v. 22.4.2 running 'modules:config'\r\nweb login: "),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  waiting  it is not through yet
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken; cloud-init is not done yet: it is not through yet
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  ok       finished
            Service     BROKEN   web does not lead to 10.88.0.7, because the machine is not ready
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is Service: web does not lead to 10.88.0.7, because the machine is not ready
            | condition Ready=False (ContainersNotReady) of VirtualMachineInstance web: the readiness probe has not succeeded
            > its readiness probe decides: check the port and what listens there in the guest
        "#]],
    );
    check(
        &format!(
            "{}{console}",
            changed("selector: {app: web}", "selector: {app: shop}")
        ),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  ok       finished
            Service     ok       web leads to endpoints of its own
            gateway     -        nothing publishes it

            VirtualMachine vms/web: every link holds
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  ok       finished
            Service     ok       web to 10.88.0.7
            gateway     -        nothing publishes it

            VirtualMachine vms/web: every link holds
        "#]],
    );
    check(
        &format!("{}{console}", changed("ipAddress: 10.88.0.7", "mac: x")),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  ok       finished
            Service     BROKEN   web has no address
            gateway     -        nothing publishes it

            VirtualMachine vms/web: the first broken link is Service: web has no address
            > look at the interfaces in its status, and at the log of its node
        "#]],
    );
    check(
        &format!(
            "{}{console}",
            changed("addresses: [10.88.0.7]", "addresses: [10.88.0.8]")
        ),
        &expect![[r#"
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  ok       finished
            Service     waiting  web does not lead to 10.88.0.7 yet
            gateway     -        nothing publishes it

            VirtualMachine vms/web: nothing is broken; Service is not done yet: web does not lead to 10.88.0.7 yet
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
            scheduling  ok       on node n1
            disk        ok       web-root Succeeded; web-root Bound; disks have their content
            boot        ok       it asks for a login
            cloud-init  ok       finished
            Service     -        no Service selects the machine
            gateway     -        nothing publishes it

            VirtualMachine vms/web: every link holds
        "#]],
    );
}

#[test]
fn ports_by_their_names() {
    let console = "console: 'cloud-init: finished, status: done, web login:'\n";
    let by_name = |ports: &str| {
        let spec = "spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}";
        let given = changed("spec: {selector: {app: web}}", spec);
        let mut given: Value = yaml::from_str(&format!("{given}{console}"), yaml::Limits::default()).unwrap();
        let ports: Value = yaml::from_str(ports, yaml::Limits::default()).unwrap();
        given["vmi"]["spec"]["domain"]["devices"]["interfaces"] =
            serde_json::json!([{"name": "default", "ports": ports}]);
        let all = shown(&given.to_string());
        all.lines()
            .find(|it| it.starts_with("Service"))
            .unwrap()
            .to_owned()
    };
    for (ports, expected) in [
        (
            "[{name: http, port: 8080}]",
            "Service     ok       web to 10.88.0.7",
        ),
        (
            "[{name: http, port: 8080, protocol: UDP}]",
            "Service     BROKEN   web sends port 80 to the port \"http\" of web, which has none of that name",
        ),
        (
            "[{name: admin, port: 8080}]",
            "Service     BROKEN   web sends port 80 to the port \"http\" of web, which has none of that name",
        ),
    ] {
        assert_eq!(by_name(ports), expected, "{ports}");
    }
}
