//! Clusters that Applications deploy to, which Argo CD keeps as Secrets.

use serde_json::{Map, Value, json};

use crate::table::Table;

/// What is known of a cluster. Values of Secrets are handed over decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The API server.
    pub server: String,
    /// Its name.
    pub name: String,
    /// The namespaces that may be deployed to; none: all.
    pub namespaces: Vec<String>,
    /// The project that it is reserved for.
    pub project: String,
    /// The Kubernetes version, if it was asked.
    pub version: String,
    /// `Successful` or `Failed`, if it was asked.
    pub status: String,
    /// Why it failed.
    pub message: String,
}

/// The cluster that an installation itself is in, which needs no Secret.
pub const IN_CLUSTER: (&str, &str) = ("https://kubernetes.default.svc", "in-cluster");

impl Cluster {
    /// Reads the decoded values of a Secret.
    pub fn read(data: &Map<String, Value>) -> Self {
        let of = |field: &str| {
            data.get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let namespaces = of("namespaces");
        let namespaces = namespaces.split(',').map(str::trim).filter(|it| !it.is_empty());
        Self {
            server: of("server").trim_end_matches('/').to_owned(),
            name: of("name"),
            namespaces: namespaces.map(str::to_owned).collect(),
            project: of("project"),
            ..Self::default()
        }
    }

    /// Whether a server or name means this cluster.
    pub fn is(&self, server_or_name: &str) -> bool {
        if server_or_name.starts_with("https://") || server_or_name.starts_with("http://") {
            self.server == server_or_name.trim_end_matches('/')
        } else {
            self.name == server_or_name
        }
    }
}

/// The name of the Secret of a server.
pub fn secret_name(server: &str) -> String {
    let host = server.split("://").nth(1).unwrap_or(server);
    let host = host.split('/').next().unwrap_or_default();
    let host = match host.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
        Some(address) => address.replace(':', "-"),
        None => host.split(':').next().unwrap_or_default().to_owned(),
    };
    // FNV-1a, which Argo CD uses here.
    let sum = server.bytes().fold(0x811c_9dc5_u32, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("cluster-{}-{sum}", host.to_lowercase())
}

/// The Secret of a cluster. `config` is how to get in, as Argo CD writes it.
pub fn secret(
    cluster: &Cluster,
    config: &Value,
    labels: &Map<String, Value>,
    annotations: &Map<String, Value>,
) -> Value {
    let mut labels = labels.clone();
    labels.insert("argocd.argoproj.io/secret-type".to_owned(), json!("cluster"));
    let mut annotations = annotations.clone();
    annotations.insert("managed-by".to_owned(), json!("argocd.argoproj.io"));
    let server = cluster.server.trim_end_matches('/');
    let mut data = json!({"server": server, "name": cluster.name, "config": config.to_string()});
    if !cluster.namespaces.is_empty() {
        data["namespaces"] = json!(cluster.namespaces.join(","));
    }
    if !cluster.project.is_empty() {
        data["project"] = json!(cluster.project);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name(server), "labels": labels, "annotations": annotations},
        "type": "Opaque",
        "stringData": data,
    })
}

/// The table of clusters.
pub fn table(clusters: &[Cluster]) -> String {
    let mut table = Table::new(["SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT"]);
    for it in clusters {
        let server = match it.namespaces.len() {
            0 => it.server.clone(),
            count => format!("{} ({count} namespaces)", it.server),
        };
        table.line([
            &server,
            &it.name,
            &it.version,
            &it.status,
            &it.message,
            &it.project,
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_what_argocd_writes() {
        let cluster = Cluster {
            server: "https://spoke.example:6443/".to_owned(),
            name: "spoke".to_owned(),
            namespaces: vec!["a".to_owned(), "b".to_owned()],
            ..Cluster::default()
        };
        let labels = json!({"env": "prod"});
        let made = secret(
            &cluster,
            &json!({"bearerToken": "t"}),
            labels.as_object().unwrap(),
            &Map::new(),
        );
        assert_eq!(
            made["metadata"]["labels"],
            json!({"env": "prod", "argocd.argoproj.io/secret-type": "cluster"})
        );
        assert_eq!(
            made["stringData"],
            json!({"server": "https://spoke.example:6443", "name": "spoke", "config": "{\"bearerToken\":\"t\"}", "namespaces": "a,b"})
        );
        let read = Cluster::read(made["stringData"].as_object().unwrap());
        assert!(
            read.is("spoke") && read.is("https://spoke.example:6443/") && !read.is("https://spoke.example")
        );
        assert_eq!(read.namespaces, ["a", "b"]);
    }

    /// Argo CD's own test has the first of these.
    #[test]
    fn names_of_secrets() {
        for (server, name) in [
            ("http://foo", "cluster-foo-752281925"),
            ("https://FOO:6443/x", "cluster-foo-"),
            ("https://[fe80::1]:6443", "cluster-fe80--1-"),
        ] {
            assert!(secret_name(server).starts_with(name), "{}", secret_name(server));
        }
    }

    #[test]
    fn clusters_in_a_table() {
        let cluster = Cluster {
            server: "s".to_owned(),
            name: "n".to_owned(),
            namespaces: vec!["a".to_owned()],
            ..Cluster::default()
        };
        assert_eq!(
            table(&[cluster]),
            "SERVER            NAME  VERSION  STATUS  MESSAGE  PROJECT\ns (1 namespaces)  n                               \n"
        );
    }
}
