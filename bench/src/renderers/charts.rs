//! Charts: `fairway render` beside `helm template`, and one rendering within a process that goes on.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fairway_gitops_helm::Offline;
use fairway_gitops_render::{Params, Ports, render};
use fairway_gitops_tree::{Tree, TreeBuilder};

use super::measured::{Cost, cost, median};
use super::{Files, Options, milliseconds, output, write};
use crate::process::cpu_time;

/// How many times less CPU time than helm, and what part of its memory at most.
const CPU_FLOOR: f64 = 10.0;
const MEMORY_CEILING: f64 = 1.0 / 3.0;
/// Short commands are measured over several runs: about as long as one of the largest chart takes.
const MEASURED_FOR: Duration = Duration::from_millis(800);

/// A chart and where it lies.
struct Case {
    name: String,
    directory: PathBuf,
}

/// What a chart costs: helm, our command, and a rendering in process.
struct Figures {
    original: Cost,
    command: Cost,
    in_process: Duration,
}

/// Measures every chart; gives the table, and which charts missed a floor.
pub(super) fn table(options: &Options, scratch: &Path) -> Result<(String, Vec<String>)> {
    let generated = scratch.join("chart-20");
    write(&generated, &twenty_templates())?;
    let mut cases = vec![Case {
        name: "20 templates".to_owned(),
        directory: generated,
    }];
    for given in &options.charts {
        let (name, directory) = given
            .split_once('=')
            .with_context(|| format!("--chart {given}: NAME=DIRECTORY is wanted"))?;
        cases.push(Case {
            name: name.to_owned(),
            directory: directory.into(),
        });
    }
    let mut text = String::from(
        "\n| chart | output | helm, CPU | Fairway, command | ratio | in process | ratio | helm, peak | Fairway, peak | part |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut below = Vec::new();
    for case in &cases {
        let printed = compare(options, case).with_context(|| case.name.clone())?;
        let figures = measure(options, case).with_context(|| case.name.clone())?;
        let ratio = |ours: Duration| figures.original.cpu.as_secs_f64() / ours.as_secs_f64().max(1e-9);
        let part = figures.command.peak as f64 / figures.original.peak.max(1) as f64;
        let (whole, within) = (ratio(figures.command.cpu), ratio(figures.in_process));
        if whole < CPU_FLOOR || within < CPU_FLOOR || part > MEMORY_CEILING {
            below.push(case.name.clone());
        }
        writeln!(
            text,
            "| {} | {} KB | {} | {} | {whole:.1}× | {} | {within:.0}× | {} | {} | {part:.2} |",
            case.name,
            printed / 1000,
            milliseconds(figures.original.cpu),
            milliseconds(figures.command.cpu),
            milliseconds(figures.in_process),
            megabytes(figures.original.peak),
            megabytes(figures.command.peak),
        )?;
    }
    writeln!(
        text,
        "\nFloors: {CPU_FLOOR}× less CPU than helm for the command and in process, a third of its memory."
    )?;
    Ok((text, below))
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn original(options: &Options, case: &Case) -> Result<String> {
    output(
        Command::new(&options.helm)
            .args(["template", "release-name"])
            .arg(&case.directory),
    )
}

/// Both print the same, apart from what helm itself prints differently each time. Gives how much it is.
fn compare(options: &Options, case: &Case) -> Result<usize> {
    let (first, second) = (original(options, case)?, original(options, case)?);
    let ours = output(Command::new(&options.fairway).arg("render").arg(&case.directory))?;
    if first.lines().count() != ours.lines().count() {
        bail!("the outputs differ in length");
    }
    for ((first, second), ours) in first.lines().zip(second.lines()).zip(ours.lines()) {
        if first == second && first != ours {
            bail!("the outputs differ: helm has {first:?}, Fairway {ours:?}");
        }
    }
    Ok(first.len())
}

fn measure(options: &Options, case: &Case) -> Result<Figures> {
    let directory = case.directory.to_str().context("a path that is not UTF-8")?;
    let helm = |repeat| cost(&options.helm, &["template", "release-name", directory], repeat);
    let ours = |repeat| cost(&options.fairway, &["render", directory], repeat);
    let tree = tree(&case.directory)?;
    let own = std::process::id();
    let within = |repeat: u32| -> Result<Duration> {
        let before = cpu_time(own)?;
        for _ in 0..repeat {
            in_process(&tree)?;
        }
        Ok((cpu_time(own)? - before) / repeat)
    };
    let often = |once: Duration| {
        u32::try_from(MEASURED_FOR.as_micros() / once.as_micros().max(1))
            .unwrap_or(1)
            .clamp(1, 200)
    };
    let (helms, commands, withins) = (often(helm(1)?.cpu), often(ours(1)?.cpu), often(within(1)?));
    let (mut originals, mut command, mut in_process) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds.max(1) {
        originals.push(helm(helms)?);
        command.push(ours(commands)?);
        in_process.push(within(withins)?);
    }
    let middle = |costs: &[Cost]| Cost {
        cpu: median(costs.iter().map(|cost| cost.cpu).collect()).unwrap_or_default(),
        peak: median(costs.iter().map(|cost| cost.peak).collect()).unwrap_or_default(),
    };
    Ok(Figures {
        original: middle(&originals),
        command: middle(&command),
        in_process: median(in_process).unwrap_or_default(),
    })
}

/// What a GitOps engine pays: everything from the files in memory to the objects.
fn in_process(tree: &Tree) -> Result<usize> {
    let environment = Offline::default();
    let ports = Ports {
        environment: &environment,
        fetcher: None,
    };
    Ok(render(tree, "", None, &Params::default(), ports)?.objects.len())
}

fn tree(directory: &Path) -> Result<Tree> {
    let mut builder = Tree::builder();
    add(&mut builder, directory, "")?;
    Ok(builder.build())
}

fn add(builder: &mut TreeBuilder, directory: &Path, below: &str) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().context("a name that is not UTF-8")?;
        let path = if below.is_empty() {
            name.to_owned()
        } else {
            format!("{below}/{name}")
        };
        if entry.file_type()?.is_dir() {
            add(builder, &entry.path(), &path)?;
        } else {
            builder.file(&path, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// A chart as people write them: helpers, conditions, loops, values printed as YAML, checksums; 20 templates.
fn twenty_templates() -> Files {
    let mut files: Files = vec![
        (
            "Chart.yaml".to_owned(),
            "apiVersion: v2\nname: twenty\nversion: 1.2.3\nappVersion: \"4.5\"\n".to_owned(),
        ),
        ("templates/_helpers.tpl".to_owned(), HELPERS.to_owned()),
    ];
    let mut values =
        String::from("global:\n  registry: registry.example.com\n  labels:\n    team: harbour\n");
    for part in 0..5 {
        let name = format!("part{part}");
        let _ = write!(values, "{name}:\n{PART_VALUES}");
        for (kind, template) in [
            ("deployment", DEPLOYMENT),
            ("service", SERVICE),
            ("configmap", CONFIG_MAP),
            ("rbac", RBAC),
        ] {
            files.push((
                format!("templates/{name}-{kind}.yaml"),
                template.replace("PART", &name),
            ));
        }
    }
    files.push(("values.yaml".to_owned(), values));
    files
}

const HELPERS: &str = r#"{{- define "twenty.name" -}}
{{- printf "%s-%s" .root.Release.Name .part | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- define "twenty.labels" -}}
app.kubernetes.io/name: {{ .part }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.global.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- define "twenty.image" -}}
{{- $image := .image -}}
{{ .root.Values.global.registry }}/{{ required "a repository" $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end }}
"#;

const PART_VALUES: &str = r#"  replicas: 2
  image:
    repository: harbour/app
    pullPolicy: IfNotPresent
  ports:
  - {name: http, port: 80, target: 8080}
  - {name: metrics, port: 9090, target: 9090}
  env:
    LEVEL: info
    ENDPOINT: https://example.com/api
    WORKERS: 4
  resources:
    requests: {cpu: 100m, memory: 128Mi}
    limits: {memory: 256Mi}
  config:
    server:
      address: 0.0.0.0:8080
      timeout: 30s
    features: [one, two, three]
  rules:
  - apiGroups: [""]
    resources: [configmaps, secrets]
    verbs: [get, list, watch]
  nodeSelector: {}
  tolerations: []
"#;

const DEPLOYMENT: &str = r#"{{- $part := .Values.PART }}
{{- $scope := dict "root" . "part" "PART" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "twenty.name" $scope }}
  labels:
    {{- include "twenty.labels" $scope | nindent 4 }}
spec:
  replicas: {{ $part.replicas }}
  selector:
    matchLabels:
      app.kubernetes.io/name: PART
  template:
    metadata:
      annotations:
        checksum/config: {{ include (print $.Template.BasePath "/PART-configmap.yaml") . | sha256sum }}
      labels:
        {{- include "twenty.labels" $scope | nindent 8 }}
    spec:
      containers:
      - name: main
        image: {{ include "twenty.image" (merge (dict "image" $part.image) $scope) | quote }}
        imagePullPolicy: {{ $part.image.pullPolicy }}
        ports:
        {{- range $part.ports }}
        - name: {{ .name }}
          containerPort: {{ .target }}
        {{- end }}
        env:
        {{- range $name, $value := $part.env }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
        resources:
          {{- toYaml $part.resources | nindent 10 }}
      {{- with $part.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $part.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
"#;

const SERVICE: &str = r#"{{- $scope := dict "root" . "part" "PART" }}
{{- if .Values.PART.ports }}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "twenty.name" $scope }}
  labels:
    {{- include "twenty.labels" $scope | nindent 4 }}
spec:
  selector:
    app.kubernetes.io/name: PART
  ports:
  {{- range .Values.PART.ports }}
  - name: {{ .name }}
    port: {{ .port }}
    targetPort: {{ .target }}
  {{- end }}
{{- end }}
"#;

const CONFIG_MAP: &str = r#"{{- $scope := dict "root" . "part" "PART" }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "twenty.name" $scope }}
  labels:
    {{- include "twenty.labels" $scope | nindent 4 }}
data:
  config.yaml: |
    {{- toYaml .Values.PART.config | nindent 4 }}
  settings.json: {{ .Values.PART.config | toJson | quote }}
"#;

const RBAC: &str = r#"{{- $scope := dict "root" . "part" "PART" }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "twenty.name" $scope }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "twenty.name" $scope }}
rules:
{{ toYaml .Values.PART.rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "twenty.name" $scope }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "twenty.name" $scope }}
subjects:
- kind: ServiceAccount
  name: {{ include "twenty.name" $scope }}
  namespace: {{ .Release.Namespace }}
"#;
