//! `plugin.yaml`: which programs a plugin has, and for which sources it is meant.

use std::collections::BTreeMap;

use fairway_gitops_tree::{Tree, path};
use fairway_text_glob::Glob;
use fairway_text_yaml::{Limits, from_str};
use serde_json::Value;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) words: Vec<String>,
}

impl Program {
    fn read(value: &Value) -> Option<Self> {
        let list = |field: &str| value[field].as_array().into_iter().flatten();
        let words = list("command").chain(list("args"));
        let words: Vec<String> = words
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        let has_command = value["command"].as_array().is_some_and(|list| !list.is_empty());
        has_command.then_some(Self { words })
    }
}

/// How a plugin finds out whether a source is for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Discovery {
    /// It is used by those who name it.
    None,
    /// A file fits a pattern, from the directory of the source.
    Glob(String),
    /// A program prints something.
    Program(Program),
}

/// A plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definition {
    /// With its version, if it has one.
    pub(super) name: String,
    pub(super) init: Option<Program>,
    pub(super) generate: Program,
    pub(super) discovery: Discovery,
}

impl Definition {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let document = from_str(text, Limits::default()).map_err(|error| error.to_string())?;
        let invalid = |why: &str| format!("invalid plugin configuration file. {why}");
        let spec = &document["spec"];
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            return Err(invalid("metadata.name should be non-empty"));
        }
        match document["kind"].as_str() {
            Some("ConfigManagementPlugin") => {}
            other => {
                let found = other.unwrap_or_default();
                return Err(invalid(&format!(
                    "kind should be ConfigManagementPlugin, found {found}"
                )));
            }
        }
        let generate = Program::read(&spec["generate"])
            .ok_or_else(|| invalid("spec.generate command should be non-empty"))?;
        let discover = &spec["discover"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let discovery = text(&discover["fileName"])
            .or_else(|| text(&discover["find"]["glob"]))
            .map(Discovery::Glob)
            .or_else(|| Program::read(&discover["find"]).map(Discovery::Program))
            .unwrap_or(Discovery::None);
        if let Discovery::Glob(pattern) = &discovery {
            Glob::new(pattern, &['/'])
                .map_err(|error| invalid(&format!("the pattern {pattern:?}: {error}")))?;
        }
        Ok(Self {
            name: match text(&spec["version"]) {
                Some(version) => format!("{name}-{version}"),
                None => name.to_owned(),
            },
            init: Program::read(&spec["init"]),
            generate,
            discovery,
        })
    }
}

/// Whether a file in a directory or below it fits a pattern, in which only `**` crosses directories.
pub(super) fn has_file(tree: &Tree, directory: &str, pattern: &str) -> bool {
    let Ok(glob) = Glob::new(pattern.trim_start_matches("./"), &['/']) else {
        return false;
    };
    // `**/x` means x itself, too.
    let short = pattern
        .strip_prefix("**/")
        .and_then(|rest| Glob::new(rest, &['/']).ok());
    let reader = tree.reader();
    let Ok(files) = reader.walk(directory) else {
        return false;
    };
    files.iter().any(|file| {
        let inner = match directory {
            "" => file.as_str(),
            directory if path::is_within(file, directory) => file[directory.len()..].trim_start_matches('/'),
            _ => return false,
        };
        glob.matches(inner) || short.as_ref().is_some_and(|short| short.matches(inner))
    })
}

/// The variables that parameters become: all of them as JSON, and each for itself.
pub(super) fn parameters(list: &[Value]) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let all = Value::Array(list.to_vec());
    variables.insert("ARGOCD_APP_PARAMETERS".to_owned(), all.to_string());
    for parameter in list {
        let base = format!(
            "PARAM_{}",
            escaped(parameter["name"].as_str().unwrap_or_default())
        );
        if let Some(text) = parameter["string"].as_str() {
            variables.insert(base.clone(), text.to_owned());
        }
        for (key, value) in parameter["map"].as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            variables.insert(format!("{base}_{}", escaped(key)), text.to_owned());
        }
        for (place, value) in parameter["array"].as_array().into_iter().flatten().enumerate() {
            let text = value.as_str().unwrap_or_default();
            variables.insert(format!("{base}_{place}"), text.to_owned());
        }
    }
    variables
}

fn escaped(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let upper = name.to_uppercase();
    upper.chars().map(|c| if is_good(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_are_read() {
        let text = "kind: ConfigManagementPlugin\nmetadata: {name: jot}\nspec:\n  version: v1\n  init: {command: [sh, -c], args: [x]}\n  generate: {command: [cat]}\n  discover: {find: {glob: \"**/*.jot\"}}\n";
        let found = Definition::parse(text).unwrap();
        assert_eq!(found.name, "jot-v1");
        assert_eq!(found.init.unwrap().words, ["sh", "-c", "x"]);
        assert_eq!(found.discovery, Discovery::Glob("**/*.jot".to_owned()));
        for (text, part) in [
            ("kind: Pod\nmetadata: {name: a}\n", "found Pod"),
            ("kind: ConfigManagementPlugin\nmetadata: {}\n", "metadata.name"),
            (
                "kind: ConfigManagementPlugin\nmetadata: {name: a}\nspec: {generate: {args: [x]}}\n",
                "spec.generate",
            ),
            (
                "kind: ConfigManagementPlugin\nmetadata: {name: a}\nspec: {generate: {command: [x]}, discover: {fileName: \"[\"}}\n",
                "pattern",
            ),
        ] {
            let why = Definition::parse(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn sources_are_found_by_their_files() {
        let tree = Tree::of([
            ("app/main.jot", &b"x"[..]),
            ("app/deep/er/more.jet", &b"x"[..]),
            ("other/a.txt", &b"x"[..]),
        ])
        .unwrap();
        for (directory, pattern, expected) in [
            ("app", "main.jot", true),
            ("app", "*.jot", true),
            ("app", "*.jet", false),
            ("app", "**/*.jet", true),
            ("app", "**/*.jot", true),
            ("app", "./main.*", true),
            ("", "app/*.jot", true),
            ("other", "*.jot", false),
            ("nowhere", "*", false),
        ] {
            assert_eq!(
                has_file(&tree, directory, pattern),
                expected,
                "{directory} {pattern}"
            );
        }
    }

    #[test]
    fn parameters_become_variables() {
        let list = [
            json!({"name": "values-files", "array": ["a", "b"]}),
            json!({"name": "image", "map": {"tag.x": "1"}}),
            json!({"name": "n", "string": "s"}),
        ];
        let found = parameters(&list);
        for (name, value) in [
            ("PARAM_VALUES_FILES_0", "a"),
            ("PARAM_VALUES_FILES_1", "b"),
            ("PARAM_IMAGE_TAG_X", "1"),
            ("PARAM_N", "s"),
        ] {
            assert_eq!(found[name], value);
        }
        assert!(found["ARGOCD_APP_PARAMETERS"].starts_with("[{\"name\":\"values-files\""));
        assert_eq!(parameters(&[])["ARGOCD_APP_PARAMETERS"], "[]");
    }
}
