//! `fairway cluster`: clusters that Applications deploy to, as the Secrets that Argo CD keeps them in.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::argoproj::{CONTROL_PLANES, SECRET_TYPE_LABEL};
use fairway_controller::Requests;
use fairway_gitops_view::cluster::{Cluster as Known, IN_CLUSTER, secret, secret_name, table};
use fairway_gitops_view::field::text;
use fairway_kernel_x509::encode;
use serde_json::{Map, Value, json};

use super::gitops::{Answer, Session, confirm, pairs, print_value, run as run_command, told};
use crate::cli::appset::{Cluster, ClusterAdd, ClusterCommand, ClusterFormat, ClusterList, ClusterRm};

const ACCOUNT: &str = "argocd-manager";
const ROLE: &str = "argocd-manager-role";
const BINDING: &str = "argocd-manager-role-binding";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// How long the other cluster may take to fill in a token.
const TOKEN_ATTEMPTS: usize = 60;
const TOKEN_PAUSE: Duration = Duration::from_millis(500);

/// Does what was asked for.
pub(crate) fn run(options: &Cluster) -> anyhow::Result<ExitCode> {
    run_command(async {
        match &options.command {
            ClusterCommand::Add(options) => add(options).await?,
            ClusterCommand::List(options) => list(options).await?,
            ClusterCommand::Rm(options) => remove(options).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The Secrets of one of Argo CD's types.
pub(super) async fn labelled(session: &Session, kind: &str) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for namespace in CONTROL_PLANES {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        let found = session
            .requests
            .list_selected(&path, &format!("{SECRET_TYPE_LABEL}={kind}"))
            .await;
        all.extend(found.map_err(told)?);
    }
    Ok(all)
}

/// What is in a Secret, as text.
pub(super) fn decoded(secret: &Value) -> Map<String, Value> {
    let data = secret["data"].as_object().into_iter().flatten();
    let text = |value: &Value| {
        let bytes = STANDARD
            .decode(value.as_str().unwrap_or_default())
            .unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    data.map(|(key, value)| (key.clone(), text(value).into()))
        .collect()
}

/// Every cluster with its Secret; the one that Applications are in has none, unless somebody made one.
pub(super) async fn secrets(session: &Session) -> anyhow::Result<Vec<(Known, Option<Value>)>> {
    let found = labelled(session, "cluster").await?.into_iter();
    let mut all: Vec<_> = found.map(|it| (Known::read(&decoded(&it)), Some(it))).collect();
    if !all.iter().any(|(it, _)| it.server == IN_CLUSTER.0) {
        let here = Known {
            server: IN_CLUSTER.0.to_owned(),
            name: IN_CLUSTER.1.to_owned(),
            ..Known::default()
        };
        all.insert(0, (here, None));
    }
    all.sort_by(|a, b| a.0.server.cmp(&b.0.server));
    Ok(all)
}

async fn list(options: &ClusterList) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    let mut all: Vec<Known> = secrets(&session).await?.into_iter().map(|(it, _)| it).collect();
    let version = session.requests.get("/version").await.ok().flatten();
    for it in all.iter_mut().filter(|it| it.server == IN_CLUSTER.0) {
        it.version = version
            .as_ref()
            .map(|it| text(it, "/gitVersion").to_owned())
            .unwrap_or_default();
        it.status = "Successful".to_owned();
    }
    let value = |it: &Known| {
        let mut value = json!({"server": it.server, "name": it.name});
        for (field, text) in [("project", &it.project), ("serverVersion", &it.version)] {
            if !text.is_empty() {
                value[field] = json!(text);
            }
        }
        if !it.namespaces.is_empty() {
            value["namespaces"] = json!(it.namespaces);
        }
        value
    };
    match options.output {
        ClusterFormat::Wide => print!("{}", table(&all)),
        ClusterFormat::Server => all.iter().for_each(|it| println!("{}", it.server)),
        ClusterFormat::Json | ClusterFormat::Yaml => {
            let all: Vec<Value> = all.iter().map(value).collect();
            print_value(&json!(all), options.output == ClusterFormat::Yaml);
        }
    }
    Ok(())
}

async fn remove(options: &ClusterRm) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    let all = secrets(&session).await?;
    let named: Vec<_> = all.iter().filter(|(it, _)| it.is(&options.cluster)).collect();
    if named.is_empty() {
        bail!("there is no cluster {:?}", options.cluster);
    }
    if !options.yes
        && confirm(
            &format!("Are you sure you want to remove '{}'?", options.cluster),
            false,
        )? == Answer::No
    {
        println!("The command to remove '{}' was cancelled.", options.cluster);
        return Ok(());
    }
    for (_, secret) in named {
        let Some(secret) = secret else {
            bail!(
                "{} is where Applications are themselves; it cannot be removed",
                IN_CLUSTER.1
            );
        };
        let (namespace, name) = (
            text(secret, "/metadata/namespace"),
            text(secret, "/metadata/name"),
        );
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        session.requests.delete(&path).await.map_err(told)?;
    }
    println!("Cluster '{}' removed", options.cluster);
    Ok(())
}

async fn add(options: &ClusterAdd) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    let target = session.other(&options.place, &options.target).await?;
    let level = if options.namespace.is_empty() {
        "cluster"
    } else {
        "namespace"
    };
    let question = format!(
        "WARNING: This will create a service account `{ACCOUNT}` on the cluster referenced by context `{}` with full {level} \
         level privileges. Do you want to continue",
        options.target
    );
    if options.service_account.is_none() && !options.yes && confirm(&question, false)? == Answer::No {
        bail!("nothing was added");
    }
    let there = Requests::new(target.own_client()?);
    let account = options.service_account.as_deref();
    if account.is_none() {
        install(&there, &options.system_namespace, &options.namespace).await?;
    }
    let token = token(&there, &options.system_namespace, account.unwrap_or(ACCOUNT)).await?;
    let config = target.config();
    let mut tls = json!({"insecure": config.accept_invalid_certs});
    if let Some(authorities) = config.root_cert.as_ref().filter(|it| !it.is_empty()) {
        let pem: String = authorities.iter().map(|it| encode("CERTIFICATE", it)).collect();
        tls["caData"] = json!(STANDARD.encode(pem));
    }
    if let Some(name) = &config.tls_server_name {
        tls["serverName"] = json!(name);
    }
    let access = json!({"bearerToken": token, "tlsClientConfig": tls});
    let cluster = Known {
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        name: options.name.clone().unwrap_or_else(|| options.target.clone()),
        namespaces: options.namespace.clone(),
        project: options.project.clone().unwrap_or_default(),
        ..Known::default()
    };
    let map = |words: &[String]| -> anyhow::Result<Map<String, Value>> {
        Ok(pairs(words)?
            .into_iter()
            .map(|(key, value)| (key, value.into()))
            .collect())
    };
    let made = secret(
        &cluster,
        &access,
        &map(&options.label)?,
        &map(&options.annotation)?,
    );
    write(&session.requests, &cluster, &made, options.upsert).await?;
    println!("Cluster '{}' added", cluster.server);
    Ok(())
}

async fn write(here: &Requests, cluster: &Known, made: &Value, upsert: bool) -> anyhow::Result<()> {
    let namespace = CONTROL_PLANES[0];
    let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    if here
        .get(&format!("/api/v1/namespaces/{namespace}"))
        .await
        .map_err(told)?
        .is_none()
    {
        here.create("/api/v1/namespaces", &home).await.map_err(told)?;
    }
    let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
    if here.create(&secrets, made).await.map_err(told)? {
        return Ok(());
    }
    if !upsert {
        bail!(
            "the cluster {} is known already: change what is known of it with --upsert",
            cluster.server
        );
    }
    let patch = json!({"metadata": {"labels": made["metadata"]["labels"], "annotations": made["metadata"]["annotations"]},
                       "stringData": made["stringData"]});
    let path = format!("{secrets}/{}", secret_name(&cluster.server));
    here.merge(&path, &patch).await.map_err(told)?;
    Ok(())
}

/// The account that deploys, and what it may do.
async fn install(there: &Requests, system: &str, namespaces: &[String]) -> anyhow::Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": system}});
    let accounts = format!("/api/v1/namespaces/{system}/serviceaccounts");
    there
        .create(&accounts, &account)
        .await
        .map_err(told)
        .with_context(|| format!("the account {system}/{ACCOUNT} could not be made"))?;
    let everything = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let subject = json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": system}]);
    let mut objects = Vec::new();
    if namespaces.is_empty() {
        let paths = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
        objects.push((
            RBAC.to_owned(),
            "ClusterRole",
            json!({"rules": [everything, paths]}),
        ));
        objects.push((
            RBAC.to_owned(),
            "ClusterRoleBinding",
            json!({"subjects": subject, "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE}}),
        ));
    }
    for namespace in namespaces {
        let path = format!("{RBAC}/namespaces/{namespace}");
        objects.push((path.clone(), "Role", json!({"rules": [everything]})));
        objects.push((
            path,
            "RoleBinding",
            json!({"subjects": subject, "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE}}),
        ));
    }
    for (path, kind, mut object) in objects {
        let name = if kind.ends_with("Binding") { BINDING } else { ROLE };
        object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": name});
        let path = format!("{path}/{}s", kind.to_lowercase());
        if !there.create(&path, &object).await.map_err(told)? {
            // It is there: its rules and subjects are brought up to date, what it is bound to cannot change.
            let mut patch = object.clone();
            if let Some(fields) = patch.as_object_mut() {
                fields.shift_remove("roleRef");
            }
            there
                .merge(&format!("{path}/{name}"), &patch)
                .await
                .map_err(told)?;
        }
    }
    Ok(())
}

/// A token of the account that does not expire: one in a Secret.
async fn token(there: &Requests, system: &str, account: &str) -> anyhow::Result<String> {
    let name = format!("{account}-long-lived-token");
    let secrets = format!("/api/v1/namespaces/{system}/secrets");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "namespace": system, "annotations": {"kubernetes.io/service-account.name": account}},
    });
    there.create(&secrets, &secret).await.map_err(told)?;
    for _ in 0..TOKEN_ATTEMPTS {
        let found = there.get(&format!("{secrets}/{name}")).await.map_err(told)?;
        let encoded = found
            .as_ref()
            .map(|it| text(it, "/data/token").to_owned())
            .unwrap_or_default();
        if !encoded.is_empty() {
            let token = STANDARD
                .decode(encoded)
                .context("the token is not encoded as it should be")?;
            return String::from_utf8(token).context("the token is no text");
        }
        tokio::time::sleep(TOKEN_PAUSE).await;
    }
    bail!("no token was filled into the Secret {system}/{name}; does the account {account} exist?")
}
