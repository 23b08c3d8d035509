//! `fairway vm` beside the real virtctl: the same lines on the same machines, so the same words and the same exit codes.
//!
//! No guest runs here: machines are made, and nobody is there to run them. What needs a guest is in `tests/machines`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "certs/server.rs"]
mod server;

use std::process::{Command, Stdio};
use std::time::Duration;

use fairway_controller::Requests;
use serde_json::{Value, json};
use server::{Server, eventually};

/// What a command came to.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: i32,
    out: String,
    complaint: String,
}

/// A namespace of a server, and a program that acts in it.
struct Place<'a> {
    server: &'a Server,
    requests: &'a Requests,
    namespace: &'static str,
    program: Vec<&'static str>,
}

impl Place<'_> {
    async fn run(&self, line: &str) -> Said {
        let mut command = Command::new(self.program[0]);
        command
            .args(&self.program[1..])
            .args(line.split(' '))
            .args(["-n", self.namespace])
            .env("KUBECONFIG", self.server.path("kubeconfig"))
            .env("HOME", "/nonexistent/home")
            .stdin(Stdio::null());
        let done = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let complaint = text(done.stderr);
        // Its log, which Fairway does not keep.
        let told = complaint.lines().filter(|it| !it.starts_with("{\"component\""));
        let told: Vec<&str> = told
            .map(|it| it.strip_prefix("fairway: ").unwrap_or(it))
            .collect();
        Said {
            code: done.status.code().unwrap(),
            // virtctl leaves the end of a line away now and then.
            out: text(done.stdout).trim_end().to_owned(),
            complaint: told.join("\n"),
        }
    }

    fn path(&self, plural: &str, name: &str) -> String {
        let namespace = self.namespace;
        format!("/apis/kubevirt.io/v1/namespaces/{namespace}/{plural}/{name}")
    }

    async fn create(&self, path: &str, object: &Value) {
        assert!(self.requests.create(path, object).await.unwrap(), "{object}");
    }

    /// A machine that waits for a node in vain, once it is started.
    async fn machine(&self, name: &str, strategy: &str) {
        let object = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
            "spec": {
                "runStrategy": strategy,
                "template": {"spec": {
                    "domain": {
                        "memory": {"guest": "64Mi"},
                        "devices": {"interfaces": [{"name": "default", "masquerade": {}, "ports": [{"port": 22}]}]},
                    },
                    "networks": [{"name": "default", "pod": {}}],
                }},
            },
        });
        let path = format!(
            "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines",
            self.namespace
        );
        self.create(&path, &object).await;
    }

    /// Waits until the instance of a machine is there, or gone.
    async fn instance(&self, name: &str, is_there: bool) {
        let path = self.path("virtualmachineinstances", name);
        eventually(Duration::from_secs(60), &path, async || {
            let found = self.requests.get(&path).await.unwrap();
            match found {
                Some(vmi) => is_there && vmi["status"]["phase"].as_str().is_some_and(|it| !it.is_empty()),
                None => !is_there,
            }
        })
        .await;
    }
}

/// What is typed, and what waits for it to be seen before the next.
const LINES: &[(&str, Option<bool>)] = &[
    ("start nope", None),
    ("start web --dry-run", None),
    ("stop web", None),
    ("restart web", None),
    ("pause vm web", None),
    ("migrate web", None),
    ("start web", Some(true)),
    ("start web", None),
    ("start once", None),
    ("stop web --force", None),
    ("stop web --grace-period=0", None),
    ("restart web --force --grace-period=5", None),
    ("restart once", None),
    ("pause vm web", None),
    ("pause vmi web --dry-run", None),
    ("pause vm nope", None),
    ("pause vmi nope", None),
    ("unpause vm web", None),
    ("unpause vm nope", None),
    ("unpause vmi nope", None),
    ("soft-reboot web", None),
    ("soft-reboot nope", None),
    ("reset web", None),
    ("reset nope", None),
    ("credentials add-ssh-key -u demo --value ssh-rsa-A nope", None),
    ("credentials add-ssh-key -u demo --value ssh-rsa-A web", None),
    (
        "credentials add-ssh-key -u demo --value ssh-rsa-A --update-secret web",
        None,
    ),
    ("credentials remove-ssh-key -u demo --value ssh-rsa-A web", None),
    ("credentials set-password -u demo -p secret web", None),
    ("credentials set-password -u demo -p secret nope", None),
    ("credentials add-ssh-key -u demo --value ssh-rsa-A bare", None),
    (
        "credentials add-ssh-key -u demo --value ssh-rsa-A --secret nope bare",
        None,
    ),
    (
        "credentials add-ssh-key -u demo --value ssh-rsa-A --force bare",
        None,
    ),
    ("credentials add-ssh-key -u demo --value ssh-rsa-A bare", None),
    ("credentials add-ssh-key -u eve --value ssh-rsa-A bare", None),
    ("credentials remove-ssh-key -u demo --value ssh-rsa-A bare", None),
    (
        "credentials remove-ssh-key -u demo --value ssh-rsa-A --secret nope bare",
        None,
    ),
    (
        "credentials remove-ssh-key -u demo --value ssh-rsa-A --force bare",
        None,
    ),
    ("credentials set-password -u demo -p secret bare", None),
    (
        "credentials set-password -u demo -p secret --secret nope bare",
        None,
    ),
    ("credentials set-password -u demo -p secret --force bare", None),
    ("migrate web", None),
    ("migrate nope", None),
    ("migrate-cancel web", None),
    ("console nope", None),
    ("console web --timeout=0", None),
    ("vnc web", None),
    ("vnc nope", None),
    ("vnc screenshot web -f -", None),
    ("port-forward --stdio vmi/nope 22", None),
    ("port-forward --stdio vm/nope 22", None),
    ("port-forward --stdio vmi/web 22", None),
    ("port-forward --stdio vm/web 22 23", None),
    ("port-forward vm/a/b 22", None),
    ("port-forward vm/ 22", None),
    ("port-forward vm/.ns 22", None),
    ("port-forward vm/web. 22", None),
    ("port-forward vm/web sctp/22", None),
    ("port-forward vm/web :", None),
    ("ssh @vm/web", None),
    ("ssh demo@", None),
    ("scp a b", None),
    ("scp vm/a:b vm/c:d", None),
    ("addvolume web --volume-name=nope", None),
    ("addvolume web --volume-name=more --disk-type=floppy", None),
    ("addvolume web --volume-name=more --cache=all", None),
    ("addvolume nope --volume-name=more --persist", None),
    ("removevolume web --volume-name=nope --persist", None),
    ("removevolume nope --volume-name=more", None),
    ("expose vm web --name=web", None),
    ("expose vm web --name=web", None),
    (
        "expose VMI web --name=web-http --port=80 --target-port=8080 --type=nodeport",
        None,
    ),
    ("expose vmi nope --name=x --port=80", None),
    ("expose vm nope --name=x --port=80", None),
    ("expose vm web --name=x --port=80 --type=external", None),
    ("expose pod web --name=x --port=80", None),
    ("expose vm bare --name=x", None),
    ("expand", None),
    ("expand --vm nope", None),
    ("expand --vm web -o xml", None),
    ("expand --file=/nonexistent/vm.yaml", None),
    ("image-upload dv mine", None),
    ("image-upload mine --image-path=/etc/hostname", None),
    ("image-upload dv mine --image-path=/etc/hostname", None),
    (
        "image-upload pvc mine --image-path=/etc/hostname --no-create",
        None,
    ),
    ("image-upload dv more --image-path=/etc/hostname", None),
    ("image-upload pvc more --image-path=/etc/hostname", None),
    (
        "image-upload dv mine --image-path=/etc/hostname --size=1Gi --storage-class=nope",
        None,
    ),
    ("stop web", Some(false)),
    ("stop web", None),
    ("stop nope", None),
    ("restart nope", None),
];

async fn prepare(place: &Place<'_>) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}});
    place.create("/api/v1/namespaces", &namespace).await;
    place.machine("web", "Halted").await;
    place.machine("once", "Once").await;
    let bare = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "bare"},
        "spec": {"runStrategy": "Manual", "template": {"spec": {
            "domain": {"memory": {"guest": "64Mi"}, "devices": {"autoattachPodInterface": false}},
            "accessCredentials": [
                {"sshPublicKey": {
                    "source": {"secret": {"secretName": "keys"}},
                    "propagationMethod": {"qemuGuestAgent": {"users": ["demo"]}},
                }},
                {"userPassword": {
                    "source": {"secret": {"secretName": "passwords"}},
                    "propagationMethod": {"qemuGuestAgent": {}},
                }},
            ],
        }}},
    });
    for name in ["keys", "passwords"] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        let secrets = format!("/api/v1/namespaces/{}/secrets", place.namespace);
        place.create(&secrets, &secret).await;
    }
    let machines = format!(
        "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines",
        place.namespace
    );
    place.create(&machines, &bare).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "more"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let claims = format!("/api/v1/namespaces/{}/persistentvolumeclaims", place.namespace);
    place.create(&claims, &claim).await;
    place.instance("once", true).await;
}

/// What each line comes to.
async fn play(place: &Place<'_>) -> Vec<Said> {
    prepare(place).await;
    let mut all = Vec::new();
    for (line, waits_for) in LINES {
        all.push(place.run(line).await);
        if let Some(is_there) = waits_for {
            place.instance("web", *is_there).await;
        }
    }
    all
}

/// A machine with an instancetype, by its name and out of a file: the same object, but for what Go writes where there is nothing.
async fn expanded(ours: &Place<'_>, theirs: &Place<'_>) {
    // Go prints a creationTimestamp of null for each metadata, also where there are none.
    fn without_nulls(value: &mut Value) {
        match value {
            Value::Object(map) => map.values_mut().for_each(without_nulls),
            Value::Array(list) => list.iter_mut().for_each(without_nulls),
            _ => {}
        }
        if let Some(map) = value.as_object_mut() {
            map.retain(|key, it| !(it.is_null() || key == "metadata" && *it == json!({})));
        }
    }
    let instancetypes = format!(
        "/apis/instancetype.kubevirt.io/v1beta1/namespaces/{}/virtualmachineinstancetypes",
        ours.namespace
    );
    let small = json!({
        "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype", "metadata": {"name": "small"},
        "spec": {"cpu": {"guest": 3}, "memory": {"guest": "64Mi"}},
    });
    ours.create(&instancetypes, &small).await;
    let machine = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "sized"},
        "spec": {
            "runStrategy": "Halted",
            "instancetype": {"kind": "VirtualMachineInstancetype", "name": "small"},
            "template": {"spec": {"domain": {"devices": {"autoattachPodInterface": false}}}},
        },
    });
    let path = format!(
        "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines",
        ours.namespace
    );
    ours.create(&path, &machine).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), machine.to_string()).unwrap();
    let lines = [
        "--vm sized".to_owned(),
        format!("--file={}", file.path().display()),
    ];
    for line in lines
        .iter()
        .flat_map(|it| [format!("expand {it}"), format!("expand {it} -o json")])
    {
        let mut all = Vec::new();
        for place in [ours, theirs] {
            let said = place.run(&line).await;
            assert_eq!(said.code, 0, "{line}: {said:?}");
            let mut object: Value =
                fairway_text_yaml::from_slice(said.out.as_bytes(), fairway_text_yaml::Limits::default())
                    .unwrap();
            without_nulls(&mut object);
            all.push(object["spec"].clone());
        }
        assert_eq!(all[0], all[1], "{line}");
        assert_eq!(
            all[0]["template"]["spec"]["domain"]["cpu"]["sockets"], 3,
            "{line}"
        );
        assert!(all[0].get("instancetype").is_none(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_as_virtctl() {
    let server = Server::start(&["--no-machines"]);
    let requests = Requests::new(server.client().await);
    let place = |namespace, program| Place {
        server: &server,
        requests: &requests,
        namespace,
        program,
    };
    let ours = play(&place("machines", vec![env!("CARGO_BIN_EXE_fairway"), "vm"])).await;
    for ((line, _), said) in LINES.iter().zip(&ours) {
        println!("{line}\n  {} {:?} {:?}", said.code, said.out, said.complaint);
    }
    if Command::new("virtctl").arg("options").output().is_err() {
        fairway_machines_required::skipped(
            "there is no virtctl here to compare with; scripts/peers.sh virtctl builds it",
        );
        return;
    }
    let theirs = play(&place("originals", vec!["virtctl"])).await;
    let mut different = Vec::new();
    for ((line, _), (ours, theirs)) in LINES.iter().zip(ours.iter().zip(&theirs)) {
        // The one name that must differ.
        let theirs = Said {
            code: theirs.code,
            out: theirs.out.replace("originals", "machines"),
            complaint: theirs.complaint.replace("originals", "machines"),
        };
        if *ours != theirs {
            different.push(format!("{line}\n  fairway {ours:?}\n  virtctl {theirs:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    // What both have come to: the key that was added is gone, also the new Secret's is the machine's own.
    for namespace in ["machines", "originals"] {
        let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
        let all = requests.list(&secrets).await.unwrap();
        let data = |name: &str| all.iter().find(|it| it["metadata"]["name"] == name).unwrap()["data"].clone();
        assert!(
            data("keys").as_object().is_none_or(|it| it.is_empty()),
            "{namespace}: {all:?}"
        );
        assert_eq!(data("passwords"), json!({"demo": "c2VjcmV0"}), "{namespace}");
        let made: Vec<_> = all
            .iter()
            .filter(|it| it["metadata"]["ownerReferences"][0]["name"] == "bare")
            .collect();
        assert_eq!(made.len(), 1, "{namespace}: {all:?}");
        let machine = place(namespace, vec![]).path("virtualmachines", "bare");
        let machine = requests.get(&machine).await.unwrap().unwrap();
        assert_eq!(
            machine["spec"]["template"]["spec"]["accessCredentials"][2],
            json!({"sshPublicKey": {
                "source": {"secret": {"secretName": made[0]["metadata"]["name"]}},
                "propagationMethod": {"qemuGuestAgent": {"users": ["eve"]}},
            }}),
            "{namespace}"
        );
    }
    expanded(
        &place("machines", vec![env!("CARGO_BIN_EXE_fairway"), "vm"]),
        &place("machines", vec!["virtctl"]),
    )
    .await;
    // Here virtctl wraps what it is told, as it does not know the answer of its own server.
    for line in ["guestosinfo web", "fslist web", "userlist nope"] {
        let ours = place("machines", vec![env!("CARGO_BIN_EXE_fairway"), "vm"])
            .run(line)
            .await;
        let theirs = place("originals", vec!["virtctl"]).run(line).await;
        assert_eq!((ours.code, theirs.code), (1, 1), "{line}");
        let (what, why) = ours.complaint.split_once(", ").unwrap();
        assert!(theirs.complaint.starts_with(what), "{line}: {theirs:?}");
        let why = why.replace('"', "\\\"");
        assert!(theirs.complaint.contains(&why), "{line}: {why}: {theirs:?}");
    }
}
