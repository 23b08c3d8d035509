//! How the cost of a build grows with its size, for kustomizations of several shapes. Twice the resources should cost twice
//! as much, whatever they are made of.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use fairway_gitops_tree::Tree;

use super::{Files, in_process};
use crate::process::cpu_time;

const SIZES: [usize; 3] = [100, 1_000, 4_000];

/// What a kustomization is made of.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// One overlay that changes all resources of a base.
    Overlay,
    /// A strategic merge patch for each resource, by its name.
    PatchEach,
    /// A JSON patch for each resource, by a target.
    TargetEach,
    /// A ConfigMap generated for each resource.
    GeneratorEach,
    /// A replacement for each resource.
    ReplacementEach,
    /// The same names in many namespaces.
    Tenants,
    /// A base for every ten resources.
    Bases,
}

const SHAPES: [(Shape, &str); 7] = [
    (Shape::Overlay, "one overlay over all"),
    (Shape::PatchEach, "a strategic merge patch for each"),
    (Shape::TargetEach, "a JSON patch for each"),
    (Shape::GeneratorEach, "a generated ConfigMap for each"),
    (Shape::ReplacementEach, "a replacement for each"),
    (Shape::Tenants, "the same names in many namespaces"),
    (Shape::Bases, "a base for every ten"),
];

/// CPU time per resource for each shape and size.
pub(super) fn table(rounds: usize) -> Result<String> {
    let mut table = String::from(
        "\nCPU time per resource in process:\n\n| shape | 100 | 1,000 | 4,000 | growth from 1,000 |\n|---|---|---|---|---|\n",
    );
    for (shape, name) in SHAPES {
        let mut micros = Vec::new();
        for size in SIZES {
            let files = files(shape, size);
            let tree = Tree::of(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())))?;
            let mut all = Vec::new();
            for _ in 0..rounds.max(1) {
                all.push(each(&tree, size)?);
            }
            all.sort();
            micros.push(all[all.len() / 2].as_secs_f64() * 1e6 / size as f64);
        }
        write!(table, "| {name} |")?;
        for figure in &micros {
            write!(table, " {figure:.1} µs |")?;
        }
        writeln!(table, " {:.2}× |", micros[2] / micros[1])?;
    }
    Ok(table)
}

fn each(tree: &Tree, size: usize) -> Result<Duration> {
    let repeat = u32::try_from(2_000 / size).unwrap_or(1).max(1);
    let own = std::process::id();
    let before = cpu_time(own)?;
    for _ in 0..repeat {
        in_process(tree)?;
    }
    Ok((cpu_time(own)? - before) / repeat)
}

/// The files of a kustomization at `overlay`.
pub(super) fn files(shape: Shape, resources: usize) -> Files {
    let mut files = Files::new();
    let (base, overlay) = match shape {
        Shape::Tenants => (tenants(&mut files, resources), "namePrefix: prod-\n".to_owned()),
        Shape::Bases => (bases(&mut files, resources), OVERLAY.to_owned()),
        _ => (mixed(&mut files, "base", 0..resources), overlay(shape, resources)),
    };
    files.push(("base/kustomization.yaml".to_owned(), base));
    files.push((
        "overlay/kustomization.yaml".to_owned(),
        format!("resources: [../base]\n{overlay}"),
    ));
    files
}

/// Deployments, Services and ConfigMaps in turns; returns the kustomization.
fn mixed(files: &mut Files, directory: &str, numbers: std::ops::Range<usize>) -> String {
    let mut list = String::from("resources:\n");
    for at in numbers {
        let text = match at % 3 {
            0 => deployment(at),
            1 => format!(
                "apiVersion: v1\nkind: Service\nmetadata:\n  name: app-{at}\nspec:\n  selector:\n    app: app-{at}\n  ports:\n  - port: 80\n    targetPort: 8080\n"
            ),
            _ => format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-{at}\ndata:\n  key: \"{at}\"\n  config.yaml: |\n    a: 1\n    b: 2\n"
            ),
        };
        let _ = writeln!(list, "- r{at}.yaml");
        files.push((format!("{directory}/r{at}.yaml"), text));
    }
    list
}

fn bases(files: &mut Files, resources: usize) -> String {
    let mut list = String::from("resources:\n");
    for from in (0..resources).step_by(10) {
        let directory = format!("base/b{from}");
        let kustomization = mixed(files, &directory, from..(from + 10).min(resources));
        files.push((
            format!("{directory}/kustomization.yaml"),
            format!("{kustomization}nameSuffix: -v1\n"),
        ));
        let _ = writeln!(list, "- b{from}");
    }
    list
}

fn tenants(files: &mut Files, resources: usize) -> String {
    let mut list = String::from("resources:\n");
    for at in 0..resources / 2 {
        let namespace = format!("  namespace: tenant-{at}\n");
        let settings = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n{namespace}data:\n  tenant: \"{at}\"\n"
        );
        let app = deployment(0).replacen("metadata:\n", &format!("metadata:\n{namespace}"), 1);
        let _ = writeln!(list, "- t{at}.yaml");
        files.push((format!("base/t{at}.yaml"), format!("{settings}---\n{app}")));
    }
    list
}

const OVERLAY: &str = "namePrefix: prod-\nnamespace: production\nlabels:\n- pairs:\n    env: prod\n  includeSelectors: true\n\
    images:\n- name: nginx\n  newTag: \"1.29\"\nconfigMapGenerator:\n- name: settings\n  literals: [LEVEL=info]\npatches:\n- target:\n    kind: Deployment\n\
    \u{20} patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: any\n    spec:\n      template:\n        spec:\n          containers:\n          - name: main\n            resources:\n              limits:\n                memory: 256Mi\n\
    - target:\n    kind: Service\n  patch: |\n    - op: add\n      path: /spec/type\n      value: ClusterIP\n";

fn overlay(shape: Shape, resources: usize) -> String {
    let kind = |at: usize| match at % 3 {
        0 => ("apps/v1", "Deployment"),
        1 => ("v1", "Service"),
        _ => ("v1", "ConfigMap"),
    };
    let mut text = match shape {
        Shape::Overlay | Shape::Tenants | Shape::Bases => return OVERLAY.to_owned(),
        Shape::PatchEach | Shape::TargetEach => "patches:\n".to_owned(),
        Shape::GeneratorEach => "configMapGenerator:\n".to_owned(),
        Shape::ReplacementEach => "replacements:\n".to_owned(),
    };
    for at in 0..resources {
        let (api, kind) = kind(at);
        let _ = match shape {
            Shape::PatchEach => write!(
                text,
                "- patch: |\n    apiVersion: {api}\n    kind: {kind}\n    metadata:\n      name: app-{at}\n      labels:\n        number: \"{at}\"\n"
            ),
            Shape::TargetEach => write!(
                text,
                "- target:\n    kind: {kind}\n    name: app-{at}\n  patch: |\n    - op: add\n      path: /metadata/annotations\n      value: {{number: \"{at}\"}}\n"
            ),
            Shape::GeneratorEach => write!(text, "- name: made-{at}\n  literals: [NUMBER={at}]\n"),
            _ => write!(
                text,
                "- source:\n    kind: {kind}\n    name: app-{at}\n    fieldPath: metadata.name\n  targets:\n  - select:\n      kind: {kind}\n      name: app-{at}\n    fieldPaths: [metadata.labels.self]\n    options:\n      create: true\n"
            ),
        };
    }
    text
}

fn deployment(at: usize) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{at}\n  labels:\n    app: app-{at}\nspec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app: app-{at}\n\
         \u{20} template:\n    metadata:\n      labels:\n        app: app-{at}\n    spec:\n      containers:\n      - name: main\n        image: nginx:1.27\n        ports:\n        - containerPort: 8080\n        env:\n        - name: LEVEL\n          valueFrom:\n            configMapKeyRef:\n              name: settings\n              key: LEVEL\n      - name: side\n        image: busybox:1.36\n"
    )
}
