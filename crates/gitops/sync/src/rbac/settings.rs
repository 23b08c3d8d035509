//! Where the policies of an installation are written: the ConfigMap `argocd-rbac-cm`, or `spec.rbac` of the operator's `ArgoCD`.

use serde_json::Value;

use super::{BadPolicy, MatchMode, Policies};

/// The ConfigMap.
pub const CONFIG_MAP: &str = "argocd-rbac-cm";

/// What is written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RbacSettings {
    /// Policies and groups, a line each.
    pub csv: String,
    /// The role that everybody has; empty: none.
    pub default_role: String,
    /// How patterns are read.
    pub mode: MatchMode,
    /// What of a user is compared with `g` lines beside his name.
    pub scopes: Vec<String>,
}

/// Who asks, as far as an API server knows.
#[derive(Clone, Copy)]
pub struct KnownUser<'a, 'f> {
    /// Groups.
    pub groups: &'a [String],
    /// What else is known, by name.
    pub extra: &'f dyn Fn(&str) -> Vec<&'a str>,
}

impl RbacSettings {
    /// Out of the ConfigMap: `policy.csv` and then, by name, every other `policy.*.csv`. None if it says nothing.
    pub fn of_config_map(config: &Value) -> Option<Self> {
        let data = config["data"].as_object()?;
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut csv = text("policy.csv").to_owned();
        let is_more =
            |key: &&String| key.starts_with("policy.") && key.ends_with(".csv") && *key != "policy.csv";
        let mut more: Vec<&String> = data.keys().filter(is_more).collect();
        more.sort();
        for key in more {
            csv.push('\n');
            csv.push_str(text(key));
        }
        Self::of(
            csv,
            text("policy.default"),
            text("policy.matchMode"),
            text("scopes"),
        )
    }

    /// Out of `spec.rbac` of an `ArgoCD`. None if it says nothing.
    pub fn of_operator(argocd: &Value) -> Option<Self> {
        let rbac = &argocd["spec"]["rbac"];
        let text = |key: &str| rbac[key].as_str().unwrap_or_default();
        let csv = text("policy").to_owned();
        Self::of(
            csv,
            text("defaultPolicy"),
            text("policyMatcherMode"),
            text("scopes"),
        )
    }

    fn of(csv: String, default_role: &str, mode: &str, scopes: &str) -> Option<Self> {
        if csv.trim().is_empty() && default_role.is_empty() {
            return None;
        }
        Some(Self {
            csv,
            default_role: default_role.to_owned(),
            mode: match mode {
                "regex" => MatchMode::Regex,
                _ => MatchMode::Glob,
            },
            scopes: read_scopes(scopes),
        })
    }

    /// The policies.
    ///
    /// # Errors
    /// A line is none.
    pub fn policies(&self) -> Result<Policies, BadPolicy> {
        Policies::read(&self.csv, &self.default_role, self.mode)
    }

    /// What of a user counts as a group: `groups` are his groups, any other scope what else is known of him by that name, or by
    /// a name that ends in it after a slash.
    pub fn groups<'a>(&self, user: KnownUser<'a, '_>) -> Vec<&'a str> {
        let mut found = Vec::new();
        for scope in &self.scopes {
            match scope.as_str() {
                "groups" => found.extend(user.groups.iter().map(String::as_str)),
                other => found.extend((user.extra)(other)),
            }
        }
        found
    }
}

/// A list in YAML, such as `[groups, email]`; groups if it is none.
fn read_scopes(text: &str) -> Vec<String> {
    let usual = || vec!["groups".to_owned()];
    if text.trim().is_empty() {
        return usual();
    }
    let read = fairway_text_yaml::from_str(text, fairway_text_yaml::Limits::default());
    match read.ok().as_ref().and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => usual(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_config_map_is_read() {
        let config = json!({"data": {
            "policy.z.csv": "g, z, role:admin", "policy.csv": "g, first, role:admin", "policy.a.csv": "g, a, role:admin",
            "policy.default": "role:readonly", "policy.matchMode": "regex", "scopes": "[groups, email]",
        }});
        let read = RbacSettings::of_config_map(&config).unwrap();
        assert_eq!(
            read.csv,
            "g, first, role:admin\ng, a, role:admin\ng, z, role:admin"
        );
        assert_eq!(
            (read.default_role.as_str(), read.mode),
            ("role:readonly", MatchMode::Regex)
        );
        assert_eq!(read.scopes, ["groups", "email"]);
        for nothing in [
            json!({}),
            json!({"data": {}}),
            json!({"data": {"scopes": "[groups]", "policy.csv": " \n"}}),
        ] {
            assert_eq!(RbacSettings::of_config_map(&nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_operator_s_kind_is_read() {
        // As in the overview of a hub.
        let argocd = json!({"spec": {"rbac": {"defaultPolicy": "role:readonly", "policy":
            "p, role:admin, applications, *, */*, allow\np, role:admin, clusters, *, *, allow\ng, argocd-admins, role:admin\n"
        }}});
        let read = RbacSettings::of_operator(&argocd).unwrap();
        assert_eq!(
            (read.default_role.as_str(), read.mode),
            ("role:readonly", MatchMode::Glob)
        );
        assert_eq!(read.scopes, ["groups"], "by default");
        assert_eq!(RbacSettings::of_operator(&json!({"spec": {}})), None);
        let regex = json!({"spec": {"rbac": {"policy": "g, a, b", "policyMatcherMode": "regex", "scopes": "['sub']"}}});
        let read = RbacSettings::of_operator(&regex).unwrap();
        assert_eq!(
            (read.mode, read.scopes),
            (MatchMode::Regex, vec!["sub".to_owned()])
        );
    }

    #[test]
    fn scopes_say_what_counts() {
        let groups = ["red".to_owned(), "blue".to_owned()];
        let extra = |name: &str| match name {
            "email" => vec!["bob@example.com"],
            _ => Vec::new(),
        };
        let user = KnownUser {
            groups: &groups,
            extra: &extra,
        };
        for (scopes, expected) in [
            ("", &["red", "blue"][..]),
            ("[groups]", &["red", "blue"]),
            ("[email]", &["bob@example.com"]),
            ("[email, groups]", &["bob@example.com", "red", "blue"]),
            ("[nothing]", &[]),
            ("not a list", &["red", "blue"]),
        ] {
            let settings = RbacSettings {
                scopes: read_scopes(scopes),
                csv: String::new(),
                default_role: String::new(),
                mode: MatchMode::Glob,
            };
            assert_eq!(settings.groups(user), expected, "{scopes}");
        }
    }
}
