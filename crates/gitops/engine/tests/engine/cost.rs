//! What applications cost. Run by hand: `cargo test -p fairway-gitops-engine --test engine -- --ignored --nocapture cost`.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{At, REPO, World, automated, map};

fn own(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processor time of this process so far.
pub(crate) fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: NAME\nspec:\n  clusterIP: None\n  ports:\n  - port: 80\n";
const ACCOUNT: &str = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: NAME\n";
const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: NAME\nrules:\n- apiGroups: ['']\n  resources: [configmaps]\n  verbs: [get]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures"]
async fn cost_of_four_object_applications() {
    let count: usize = std::env::var("APPLICATIONS").map_or(100, |n| n.parse().unwrap());
    let world = World::start(At::Root).await;
    let mut files = Vec::new();
    for n in 0..count {
        let name = format!("app{n}");
        files.push((format!("{name}/map.yaml"), map(&name, "1", &[])));
        for (file, text) in [("service", SERVICE), ("account", ACCOUNT), ("role", ROLE)] {
            files.push((format!("{name}/{file}.yaml"), text.replace("NAME", &name)));
        }
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    world.sources.commit(REPO, &files);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (memory, used, begun) = (own("VmRSS"), cpu(), Instant::now());
    for n in 0..count {
        let mut change = automated();
        change["spec"]["source"] = json!({"path": format!("app{n}")});
        world.application(&format!("app{n}"), change).await;
    }
    let creating = cpu() - used;
    for n in 0..count {
        world
            .until(&format!("app{n}"), "synced", |found| {
                found["status"]["sync"]["status"] == "Synced"
                    && found["status"]["health"]["status"] == "Healthy"
            })
            .await;
    }
    let (took, spent) = (begun.elapsed(), cpu() - used);
    println!(
        "{count} applications: {took:?} until all are synced, {:?} of a processor each ({creating:?} to make them all)",
        spent / u32::try_from(count).unwrap()
    );
    println!(
        "{} KiB each, the API's own objects among them",
        (own("VmRSS").saturating_sub(memory)) / count as u64
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = cpu();
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!(
        "idle: {:.2} % of a processor",
        (cpu() - idle).as_secs_f64() / 5.0 * 100.0
    );
    let mut waits = Vec::new();
    for round in 0..20 {
        let text = map("app0", &format!("round {round}"), &[]);
        let begun = Instant::now();
        let commit = world.sources.push(REPO, &[("app0/map.yaml", &text)]);
        world.synced("app0", &commit).await;
        waits.push(begun.elapsed());
    }
    waits.sort();
    println!(
        "from push to synced: median {:?}, worst {:?}",
        waits[10], waits[19]
    );
    let renders = world.sources.renders.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(
        renders,
        count + 20,
        "one render for each application, and one for each push"
    );
    world.end().await;
}
