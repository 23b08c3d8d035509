//! An app-of-apps repository as large as wanted, in the shapes of `examples/hub-spoke`: overlays over shared components,
//! kustomizations that inflate a shared chart, and charts with a values file for each application.

use std::collections::BTreeMap;

use fairway_gitops_helm::Release;
use fairway_gitops_render::{HelmSource, ValuesFile};

/// Files of a repository: path and content.
pub(super) type Files = Vec<(String, String)>;

pub(super) struct Application {
    pub(super) directory: String,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) helm: HelmSource,
}

/// A commit of one file, with as many contents as wanted.
pub(super) struct Commit {
    pub(super) name: &'static str,
    pub(super) path: String,
    pub(super) text: fn(u32) -> String,
    /// How many applications depend on the file.
    pub(super) touches: usize,
}

/// How many applications share a component.
const SHARING: usize = 12;

/// The files, the applications, and commits on them.
pub(super) fn repository(applications: usize) -> (Files, Vec<Application>, Vec<Commit>) {
    let mut files = Files::new();
    let mut made = Vec::new();
    let (mut overlays, mut inflated, mut charts) = (Vec::new(), Vec::new(), Vec::new());
    chart(&mut files);
    for at in 0..applications {
        let cluster = format!("cluster-{:02}", at % 25);
        let (directory, helm) = match at % 20 {
            0..12 => {
                let component = overlays.len() / SHARING;
                let directory = format!("clusters/{cluster}/overlays/app-{at}");
                overlay(&mut files, &directory, component);
                overlays.push(directory.clone());
                (directory, HelmSource::default())
            }
            12..17 => {
                let directory = format!("clusters/{cluster}/overlays/web-{at}");
                inflation(&mut files, &directory, at);
                inflated.push(directory.clone());
                (directory, HelmSource::default())
            }
            _ => {
                let values = format!("clusters/{cluster}/values/web-{at}.yaml");
                files.push((values.clone(), values_text(u32::try_from(at).unwrap_or_default())));
                charts.push(values.clone());
                (".helm-charts/web".to_owned(), from_values(&values, at))
            }
        };
        made.push(Application {
            directory,
            variables: variables(&cluster),
            helm,
        });
    }
    for component in 0..overlays.len().div_ceil(SHARING) {
        self::component(&mut files, component);
    }
    files.push(("README.md".to_owned(), "A repository.\n".to_owned()));
    let mut commits = vec![
        Commit {
            name: "a patch of one overlay",
            path: format!("{}/replicas.yaml", overlays[0]),
            text: replicas,
            touches: 1,
        },
        Commit {
            name: "the values of one inflated chart",
            path: format!("{}/values.yaml", inflated[0]),
            text: values_text,
            touches: 1,
        },
        Commit {
            name: "the values of one chart",
            path: charts[0].clone(),
            text: values_text,
            touches: 1,
        },
        Commit {
            name: "a file that nobody reads",
            path: "README.md".to_owned(),
            text: |number| format!("Edition {number}.\n"),
            touches: 0,
        },
    ];
    commits.push(Commit {
        name: "a shared component",
        path: "components/c0/settings.yaml".to_owned(),
        text: settings,
        touches: overlays.len().min(SHARING),
    });
    commits.push(Commit {
        name: "a template of the shared chart",
        path: ".helm-charts/web/templates/extra.yaml".to_owned(),
        text: extra,
        touches: inflated.len() + charts.len(),
    });
    (files, made, commits)
}

fn variables(cluster: &str) -> BTreeMap<String, String> {
    [
        ("CLUSTER_NAME", cluster.to_owned()),
        ("CLUSTER_BASE_DOMAIN", format!("{cluster}.example.com")),
        ("PLATFORM_BASE_DOMAIN", "example.com".to_owned()),
        ("HUB_BASE_DOMAIN", "hub.example.com".to_owned()),
        (
            "INFRA_GITOPS_REPO",
            "https://git.example.com/infra.git".to_owned(),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn kustomization(files: &mut Files, directory: &str, text: &str) {
    let head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";
    files.push((format!("{directory}/kustomization.yaml"), format!("{head}{text}")));
}

fn replicas(number: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app\nspec:\n  replicas: {}\n",
        number + 2
    )
}

fn overlay(files: &mut Files, directory: &str, component: usize) {
    let text = format!(
        "resources:\n- ../../../../components/c{component}\n- route.yaml\nnamespace: ns-{component}\nlabels:\n- pairs:\n    cluster: ${{CLUSTER_NAME}}\n\
         images:\n- name: app\n  newTag: \"1.{component}\"\npatches:\n- path: replicas.yaml\n"
    );
    kustomization(files, directory, &text);
    files.push((format!("{directory}/replicas.yaml"), replicas(1)));
    files.push((
        format!("{directory}/route.yaml"),
        "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: app\nspec:\n  host: app.apps.${CLUSTER_BASE_DOMAIN}\n  to:\n    kind: Service\n    name: app\n"
            .to_owned(),
    ));
}

fn settings(number: u32) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  hub: ${{HUB_BASE_DOMAIN}}\n  edition: \"{number}\"\n"
    )
}

fn component(files: &mut Files, number: usize) {
    let directory = format!("components/c{number}");
    kustomization(
        files,
        &directory,
        "resources:\n- namespace.yaml\n- deployment.yaml\n- service.yaml\n- settings.yaml\nconfigMapGenerator:\n- name: options\n  literals:\n  - DOMAIN=${PLATFORM_BASE_DOMAIN}\n",
    );
    for (file, text) in [
        (
            "namespace.yaml",
            format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ns-{number}\n"),
        ),
        (
            "deployment.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app\nspec:\n  replicas: 1\n  selector:\n    matchLabels:\n      app: app\n  template:\n    metadata:\n      labels:\n        app: app\n    spec:\n      containers:\n      - name: main\n        image: app:1.0\n        envFrom:\n        - configMapRef:\n            name: options\n        ports:\n        - containerPort: 8080\n"
                .to_owned(),
        ),
        (
            "service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: app\nspec:\n  selector:\n    app: app\n  ports:\n  - port: 80\n    targetPort: 8080\n"
                .to_owned(),
        ),
        // No number of a commit.
        ("settings.yaml", settings(u32::MAX)),
    ] {
        files.push((format!("{directory}/{file}"), text));
    }
}

fn values_text(number: u32) -> String {
    format!(
        "replicas: {}\nhost: web.apps.${{CLUSTER_BASE_DOMAIN}}\nedition: e{number}\n",
        number % 5 + 1
    )
}

fn inflation(files: &mut Files, directory: &str, at: usize) {
    let text = format!(
        "helmGlobals:\n  chartHome: ../../../../.helm-charts\nhelmCharts:\n- name: web\n  releaseName: web-{at}\n  namespace: web\n  valuesFile: values.yaml\n"
    );
    kustomization(files, directory, &text);
    // No number of a commit.
    files.push((format!("{directory}/values.yaml"), values_text(u32::MAX)));
}

fn from_values(values: &str, at: usize) -> HelmSource {
    HelmSource {
        release: Release {
            name: format!("web-{at}"),
            namespace: "web".to_owned(),
            ..Release::default()
        },
        values_files: vec![ValuesFile::InTree(format!("../../{values}"))],
        ..HelmSource::default()
    }
}

fn extra(number: u32) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Release.Name }}}}-extra\ndata:\n  edition: \"{number}\"\n"
    )
}

/// A chart with what charts usually have.
fn chart(files: &mut Files) {
    let mut file = |name: &str, text: String| files.push((format!(".helm-charts/web/{name}"), text));
    file(
        "Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"2.3\"\n".to_owned(),
    );
    file(
        "values.yaml",
        "replicas: 1\nhost: \"\"\nedition: none\nimage:\n  repository: web\n  tag: \"\"\nresources:\n  limits:\n    memory: 256Mi\n".to_owned(),
    );
    file(
        "templates/_helpers.tpl",
        "{{- define \"web.labels\" -}}\napp.kubernetes.io/name: {{ .Chart.Name }}\napp.kubernetes.io/instance: {{ .Release.Name }}\napp.kubernetes.io/version: {{ .Chart.AppVersion | quote }}\n{{- end }}\n".to_owned(),
    );
    file(
        "templates/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n  labels:\n    {{- include \"web.labels\" . | nindent 4 }}\nspec:\n  replicas: {{ .Values.replicas }}\n  selector:\n    matchLabels:\n      app.kubernetes.io/instance: {{ .Release.Name }}\n  template:\n    metadata:\n      labels:\n        {{- include \"web.labels\" . | nindent 8 }}\n    spec:\n      containers:\n      - name: web\n        image: \"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}\"\n        env:\n        - name: EDITION\n          value: {{ .Values.edition | quote }}\n        resources:\n          {{- toYaml .Values.resources | nindent 10 }}\n".to_owned(),
    );
    file(
        "templates/service.yaml",
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n  labels:\n    {{- include \"web.labels\" . | nindent 4 }}\nspec:\n  selector:\n    app.kubernetes.io/instance: {{ .Release.Name }}\n  ports:\n  - port: 80\n".to_owned(),
    );
    file(
        "templates/route.yaml",
        "{{- with .Values.host }}\napiVersion: route.openshift.io/v1\nkind: Route\nmetadata:\n  name: {{ $.Release.Name }}\nspec:\n  host: {{ . }}\n  to:\n    kind: Service\n    name: {{ $.Release.Name }}\n{{- end }}\n".to_owned(),
    );
    // No number of a commit.
    file("templates/extra.yaml", extra(u32::MAX));
}
