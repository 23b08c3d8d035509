//! The service account of a pod: which one, its token, and what it lets the pod refer to.

use serde_json::{Value, json};

use crate::read::{each_mut, filled, has, list, part, part_mut, set, text};

/// The account of a pod that names none.
pub const DEFAULT_ACCOUNT: &str = "default";

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
/// Upstream's: an hour, and a little that tells such tokens from those that somebody asked for.
const TOKEN_SECONDS: i64 = 3607;
const CONTAINERS: [(&str, &str); 2] = [("initContainers", "init container"), ("containers", "container")];

/// Whether a kubelet made this pod to show one that it runs by itself; such pods are left as they are.
pub fn is_mirror(pod: &Value) -> bool {
    has(part(part(pod, "metadata"), "annotations"), MIRROR)
}

/// What a mirror pod refers to and may not.
pub fn mirror_fault(pod: &Value) -> Option<&'static str> {
    let spec = part(pod, "spec");
    if !text(spec, "serviceAccountName").is_empty() {
        return Some("a mirror pod may not reference service accounts");
    }
    if list(spec, "volumes").iter().any(|v| has(v, "secret")) || filled(spec, "imagePullSecrets") {
        return Some("a mirror pod may not reference secrets");
    }
    let projects_token = list(spec, "volumes")
        .iter()
        .flat_map(|volume| list(part(volume, "projected"), "sources"))
        .any(|source| has(source, "serviceAccountToken"));
    projects_token.then_some("a mirror pod may not use ServiceAccountToken volume projections")
}

/// Names the account of a new pod, and returns its name.
pub fn choose(pod: &mut Value) -> String {
    let spec = part_mut(pod, "spec");
    if text(spec, "serviceAccountName").is_empty() {
        set(spec, "serviceAccountName", DEFAULT_ACCOUNT);
        set(spec, "serviceAccount", DEFAULT_ACCOUNT);
    }
    text(spec, "serviceAccountName").to_owned()
}

/// Gives a new pod what its account brings: a token, unless one of the two does not want it, and pull secrets. `suffix`
/// makes the volume's name unique.
pub fn equip(pod: &mut Value, account: &Value, suffix: &str) {
    let spec = part_mut(pod, "spec");
    let wanted = |object: &Value| {
        object
            .get("automountServiceAccountToken")
            .and_then(Value::as_bool)
    };
    if wanted(spec).or_else(|| wanted(account)).unwrap_or(true) {
        mount_token(spec, suffix);
    }
    if !filled(spec, "imagePullSecrets") && filled(account, "imagePullSecrets") {
        let names: Vec<Value> = list(account, "imagePullSecrets")
            .iter()
            .map(|secret| json!({"name": text(secret, "name")}))
            .collect();
        set(spec, "imagePullSecrets", names);
    }
}

fn mount_token(spec: &mut Value, suffix: &str) {
    let existing = list(spec, "volumes")
        .iter()
        .map(|volume| text(volume, "name"))
        .find(|name| name.starts_with(VOLUME_PREFIX))
        .map(str::to_owned);
    let name = existing
        .clone()
        .unwrap_or_else(|| format!("{VOLUME_PREFIX}{suffix}"));
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut needed = false;
    for (field, _) in CONTAINERS {
        for container in each_mut(spec, field) {
            let taken = list(container, "volumeMounts")
                .iter()
                .any(|mount| text(mount, "mountPath") == TOKEN_PATH);
            if !taken {
                push(container, "volumeMounts", mount.clone());
                needed = true;
            }
        }
    }
    if needed && existing.is_none() {
        let sources = json!([
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]);
        let volume = json!({"name": name, "projected": {"sources": sources, "defaultMode": 0o644}});
        push(spec, "volumes", volume);
    }
}

fn push(object: &mut Value, field: &str, item: Value) {
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => set(object, field, vec![item]),
    }
}

/// The first secret that the pod refers to and that its account, which insists, does not list.
pub fn forbidden_secret(pod: &Value, account: &Value) -> Option<String> {
    let annotations = part(part(account, "metadata"), "annotations");
    if !matches!(
        text(annotations, ENFORCE_SECRETS),
        "1" | "t" | "T" | "true" | "TRUE" | "True"
    ) {
        return None;
    }
    let lists = |field: &str, name: &str| list(account, field).iter().any(|item| text(item, "name") == name);
    let (spec, who) = (part(pod, "spec"), text(part(account, "metadata"), "name"));
    for volume in list(spec, "volumes")
        .iter()
        .filter(|volume| has(volume, "secret"))
    {
        let secret = text(part(volume, "secret"), "secretName");
        if !lists("secrets", secret) {
            return Some(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {who} does not reference that secret"
            ));
        }
    }
    for (field, word) in CONTAINERS {
        for container in list(spec, field) {
            if let Some((what, secret)) = secrets_of(container).find(|(_, secret)| !lists("secrets", secret))
            {
                return Some(format!(
                    "{word} {} with {what} referencing secret.secretName=\"{secret}\" is not allowed because service account \
                     {who} does not reference that secret",
                    text(container, "name")
                ));
            }
        }
    }
    list(spec, "imagePullSecrets")
        .iter()
        .map(|secret| text(secret, "name"))
        .enumerate()
        .find(|(_, name)| !lists("imagePullSecrets", name))
        .map(|(i, name)| {
            format!(
                "imagePullSecrets[{i}].name=\"{name}\" is not allowed because service account {who} does not reference that \
                 imagePullSecret"
            )
        })
}

/// The secrets that a container's environment comes from, and where they stand.
fn secrets_of(container: &Value) -> impl Iterator<Item = (String, &str)> {
    let single = list(container, "env").iter().filter_map(|variable| {
        let from = part(part(variable, "valueFrom"), "secretKeyRef");
        from.is_object()
            .then(|| (format!("envVar {}", text(variable, "name")), text(from, "name")))
    });
    let whole = list(container, "envFrom").iter().filter_map(|source| {
        let from = part(source, "secretRef");
        from.is_object()
            .then(|| ("envFrom".to_owned(), text(from, "name")))
    });
    single.chain(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{choose, equip, forbidden_secret, is_mirror, mirror_fault};

    fn pod(spec: Value) -> Value {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
        for (field, value) in spec.as_object().unwrap() {
            pod["spec"][field] = value.clone();
        }
        pod
    }

    #[test]
    fn a_token_is_mounted_unless_somebody_objects() {
        let mounts = |of_pod: Value, of_account: Value| {
            let mut pod = pod(json!({"automountServiceAccountToken": of_pod}));
            equip(
                &mut pod,
                &json!({"automountServiceAccountToken": of_account}),
                "abcde",
            );
            let volumes = pod["spec"]["volumes"].as_array().map_or(0, Vec::len);
            assert_eq!(
                volumes,
                pod["spec"]["containers"][0]["volumeMounts"]
                    .as_array()
                    .map_or(0, Vec::len)
            );
            volumes == 1
        };
        for (of_pod, of_account, want) in [
            (json!(null), json!(null), true),
            (json!(null), json!(true), true),
            (json!(null), json!(false), false),
            (json!(true), json!(false), true),
            (json!(false), json!(true), false),
        ] {
            assert_eq!(
                mounts(of_pod.clone(), of_account.clone()),
                want,
                "{of_pod} {of_account}"
            );
        }
    }

    #[test]
    fn what_is_there_already_stays() {
        let mounted = json!([{"name": "mine", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]);
        let mut own = pod(json!({"containers": [{"name": "c", "volumeMounts": mounted}]}));
        equip(&mut own, &json!({}), "abcde");
        assert!(own["spec"]["volumes"].is_null(), "no container needs it: {own}");

        let mut named =
            pod(json!({"volumes": [{"name": "kube-api-access-own"}], "imagePullSecrets": [{"name": "a"}]}));
        equip(&mut named, &json!({"imagePullSecrets": [{"name": "b"}]}), "abcde");
        assert_eq!(named["spec"]["volumes"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            named["spec"]["containers"][0]["volumeMounts"][0]["name"],
            "kube-api-access-own"
        );
        assert_eq!(named["spec"]["imagePullSecrets"], json!([{"name": "a"}]));

        let mut plain = pod(json!({}));
        assert_eq!(choose(&mut plain), "default");
        equip(&mut plain, &json!({"imagePullSecrets": [{"name": "b"}]}), "abcde");
        assert_eq!(plain["spec"]["imagePullSecrets"], json!([{"name": "b"}]));
        assert_eq!(choose(&mut pod(json!({"serviceAccountName": "x"}))), "x");
    }

    #[test]
    fn an_account_that_insists_lets_only_its_secrets_through() {
        let strict = json!({"metadata": {"name": "s", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
            "secrets": [{"name": "ok"}], "imagePullSecrets": [{"name": "pull"}]});
        for (spec, fault) in [
            (
                json!({"volumes": [{"name": "v", "secret": {"secretName": "ok"}}]}),
                None,
            ),
            (
                json!({"volumes": [{"name": "v", "secret": {"secretName": "no"}}]}),
                Some("volume with"),
            ),
            (
                json!({"containers": [{"name": "c", "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "no"}}}]}]}),
                Some("container c with envVar E"),
            ),
            (
                json!({"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "no"}}]}]}),
                Some("init container i with envFrom"),
            ),
            (json!({"imagePullSecrets": [{"name": "pull"}]}), None),
            (
                json!({"imagePullSecrets": [{"name": "no"}]}),
                Some("imagePullSecrets[0]"),
            ),
        ] {
            let found = forbidden_secret(&pod(spec.clone()), &strict);
            match (&found, fault) {
                (None, None) => {}
                (Some(text), Some(start)) if text.starts_with(start) => {}
                _ => panic!("{spec}: {found:?}"),
            }
            assert_eq!(
                forbidden_secret(&pod(spec), &json!({"metadata": {"name": "s"}})),
                None
            );
        }
    }

    #[test]
    fn mirror_pods_refer_to_nothing() {
        let mut mirror = pod(json!({}));
        mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        assert!(is_mirror(&mirror) && !is_mirror(&pod(json!({}))));
        for (spec, faulty) in [
            (json!({}), false),
            (json!({"serviceAccountName": "a"}), true),
            (
                json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
                true,
            ),
            (
                json!({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}]}),
                true,
            ),
        ] {
            assert_eq!(mirror_fault(&pod(spec.clone())).is_some(), faulty, "{spec}");
        }
    }
}
