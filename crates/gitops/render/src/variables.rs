//! Variables out of ConfigMaps: what a config-management plugin has in its environment.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::objects;

/// The data of the ConfigMaps in a text, the later ones over the earlier ones. `named` is what errors call the text.
///
/// As with `envFrom` in a pod, each key is the name of a variable; keys that cannot be one are an error here, because a
/// variable that is silently not substituted is found too late.
pub fn variables(text: &str, named: &str) -> Result<BTreeMap<String, String>, Error> {
    let malformed = |why: String| Error::Manifest {
        path: named.to_owned(),
        why,
    };
    let mut variables = BTreeMap::new();
    for object in objects(text, named)? {
        if object["kind"] != "ConfigMap" {
            let kind = object["kind"].as_str().unwrap_or_default();
            return Err(malformed(format!(
                "variables come from ConfigMaps, and this is a {kind}"
            )));
        }
        let Some(data) = object["data"].as_object() else {
            continue;
        };
        for (name, value) in data {
            let is_name = !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
            if !is_name {
                return Err(malformed(format!("{name:?} cannot be the name of a variable")));
            }
            let Some(value) = value.as_str() else {
                return Err(malformed(format!(
                    "the value of {name} is not a text; write it in quotes"
                )));
            };
            variables.insert(name.clone(), value.to_owned());
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: v\n";

    #[test]
    fn data_of_config_maps_are_variables() {
        let text = format!("{HEAD}data:\n  A: one\n  B: two\n---\n{HEAD}data:\n  B: three\n---\n{HEAD}");
        let found = variables(&text, "env.yaml").unwrap();
        let expected = [("A", "one"), ("B", "three")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn what_is_no_variable_is_refused_by_name() {
        for (text, expected) in [
            (format!("{HEAD}data:\n  a.b: x\n"), r#"env.yaml: "a.b" cannot be"#),
            (format!("{HEAD}data:\n  1A: x\n"), "\"1A\" cannot be"),
            (format!("{HEAD}data:\n  PORT: 80\n"), "PORT is not a text"),
            (
                HEAD.replace("ConfigMap", "Secret"),
                "come from ConfigMaps, and this is a Secret",
            ),
        ] {
            let error = variables(&text, "env.yaml").unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
