import { plurals, texts } from "../../text/t";

export const t = texts("machines", {
    title: "VirtualMachines", create: "Create", search: "Search by name", none: "No virtual machines", noneHelp: "Create one from a template: it comes out of Git and stays as Git declares it.",
    name: "Name", namespace: "Namespace", status: "Status", node: "Node", address: "IP address", created: "Created", folder: "Folder", allMachines: "All machines", tree: "Machines by namespace and folder",
    start: "Start", stop: "Stop", restart: "Restart", pause: "Pause", unpause: "Unpause", migrate: "Migrate", remove: "Delete", select: "Select {name}", selectAll: "Select all shown", chosen: "Chosen: {n}", actions: "Actions",
    deleteTitle: "Delete {name}?", deleteWhat: "These machines are deleted, with the disks that were made with them:", machinesWord: "{n} machines", requested: "{action} requested: {name}", instances: "Running instances",
    declared: "The Application {application} declares this machine: what is changed here by hand, its being stopped included, may be taken back. Change it in Git.", toApplication: "Go to the Application",
    overview: "Overview", metrics: "Metrics", yaml: "YAML", configuration: "Configuration", events: "Events", console: "Console", snapshots: "Snapshots", diagnostics: "Diagnostics",
    cpu: "CPU", memory: "Memory", instancetype: "InstanceType", runStrategy: "Run strategy", labels: "Labels", annotations: "Annotations", guestAgent: "Guest agent", os: "Operating system", disks: "Disks", networks: "Network interfaces", firmware: "Firmware",
    notRunning: "The machine does not run. Start it to see this.", cores: "{n} CPU", serial: "Serial console", vnc: "VNC console", consoleType: "Which console", connected: "Connected", connecting: "Connecting", ended: "The connection has ended.", leftOut: "{n} bytes came faster than they could be shown and are left out", connectAgain: "Connect again", failed: "The console could not be reached.",
    cpuUse: "CPU use", memoryUse: "Memory in use", metricsNote: "Measured on the machine's process every 2 seconds while this page is open; a Prometheus has the history.", percent: "{n} % of one CPU", mebibytes: "{n} MiB",
    save: "Save", reload: "Reload", saved: "Saved.", changedMeanwhile: "The machine was changed meanwhile. Reload to see the new state; what you wrote is then lost.", notYaml: "This is not YAML: {why}", notMachine: "This is not a VirtualMachine with a name: apiVersion, kind, metadata and spec are expected.", edit: "The machine as YAML",
    take: "Take snapshot", snapshotName: "Name of the snapshot", restore: "Restore", restoreTitle: "Restore {name} from {snapshot}?", restoreWhat: "The disks of {name} become what they were in the snapshot; everything written since is lost. The machine must be stopped.",
    deleteSnapshot: "Delete snapshot {name}?", deleteSnapshotWhat: "The snapshot {name} with its copies of disks.", noSnapshots: "No snapshots yet.", conditions: "Conditions", instanceConditions: "Conditions of the instance", volumes: "Volumes", why: "Why?", restores: "Restores", password: "Guests can send anything to a console; titles, clipboard and links of theirs are ignored.",
});

const all = plurals("machines", { machines: { one: "{n} virtual machine", other: "{n} virtual machines" } });
export const counted = (count: number): string => all("machines", count);
