//! `Chart.yaml`.

use serde_json::{Map, Value as Json};

use fairway_text_gotemplate::sprig::semver::Version;
use fairway_text_gotemplate::text::quote;

use crate::error::Error;

/// What a chart says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its home page.
    pub home: String,
    /// Where its source is.
    pub sources: Vec<String>,
    /// Its version.
    pub version: String,
    /// One sentence.
    pub description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Who keeps it.
    pub maintainers: Vec<Maintainer>,
    /// A picture.
    pub icon: String,
    /// `v1` or `v2`
    pub api_version: String,
    /// When it is enabled, if it is a sub-chart.
    pub condition: String,
    /// By which tags it is enabled.
    pub tags: String,
    /// The version of what it installs.
    pub app_version: String,
    /// Whether it should no longer be used.
    pub deprecated: bool,
    /// Whatever its author noted.
    pub annotations: Map<String, Json>,
    /// Which versions of Kubernetes it runs on.
    pub kube_version: String,
    /// The charts that it needs.
    pub dependencies: Vec<Dependency>,
    /// Whether it says anything of dependencies.
    pub has_dependencies: bool,
    /// `application`, `library`, or nothing
    pub kind: String,
}

/// Who keeps a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// A name.
    pub name: String,
    /// An address.
    pub email: String,
    /// A page.
    pub url: String,
}

/// A chart that another needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dependency {
    /// Its name, and its alias once dependencies were processed.
    pub name: String,
    /// Which versions will do.
    pub version: String,
    /// Where it comes from.
    pub repository: String,
    /// Values that switch it on or off.
    pub condition: String,
    /// Groups that are switched on or off together.
    pub tags: Vec<String>,
    /// What it settled to.
    pub enabled: bool,
    /// Values that the parent takes over.
    pub import_values: Vec<Json>,
    /// Another name for it.
    pub alias: String,
}

/// Reads fields as `sigs.k8s.io/yaml` does, which makes text of numbers where text is wanted.
struct Fields<'a> {
    map: &'a Map<String, Json>,
    of: &'static str,
}

fn kind_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// A scalar where text is wanted; none if it is no scalar.
pub(crate) fn scalar_text(json: &Json) -> Option<String> {
    match json {
        Json::Null => Some(String::new()),
        Json::Bool(value) => Some(value.to_string()),
        Json::Number(number) => Some(match number.as_i64() {
            Some(int) => int.to_string(),
            None => number.as_u64().map_or_else(
                || fairway_text_gotemplate::fmt::float(number.as_f64().unwrap_or(0.0)),
                |uint| uint.to_string(),
            ),
        }),
        Json::String(text) => Some(text.clone()),
        Json::Array(_) | Json::Object(_) => None,
    }
}

impl Fields<'_> {
    fn mismatch(&self, field: &str, found: &Json, wanted: &str) -> Error {
        let found = kind_of(found);
        Error::Chart(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go struct field {}.{field} of type {wanted}",
            self.of
        ))
    }

    fn text(&self, field: &str) -> Result<String, Error> {
        match self.map.get(field) {
            None => Ok(String::new()),
            Some(value) => scalar_text(value).ok_or_else(|| self.mismatch(field, value, "string")),
        }
    }

    fn texts(&self, field: &str) -> Result<Vec<String>, Error> {
        match self.map.get(field) {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::Array(items)) => {
                let texts = items
                    .iter()
                    .map(|item| scalar_text(item).ok_or_else(|| self.mismatch(field, item, "string")));
                texts.collect()
            }
            Some(other) => Err(self.mismatch(field, other, "[]string")),
        }
    }

    fn objects(&self, field: &str, wanted: &str) -> Result<Vec<&Map<String, Json>>, Error> {
        match self.map.get(field) {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::Array(items)) => items
                .iter()
                .filter(|item| !item.is_null())
                .map(|item| item.as_object().ok_or_else(|| self.mismatch(field, item, wanted)))
                .collect(),
            Some(other) => Err(self.mismatch(field, other, wanted)),
        }
    }

    fn boolean(&self, field: &str) -> Result<bool, Error> {
        match self.map.get(field) {
            None | Some(Json::Null) => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(other) => Err(self.mismatch(field, other, "bool")),
        }
    }
}

impl Metadata {
    /// Takes over what a document says; what it does not mention stays.
    pub(super) fn read(&mut self, document: &Json) -> Result<(), Error> {
        let empty = Map::new();
        let map = match document {
            Json::Null => &empty,
            Json::Object(map) => map,
            other => {
                return Err(Error::Chart(format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type chart.Metadata",
                    kind_of(other)
                )));
            }
        };
        let fields = Fields { map, of: "Metadata" };
        let texts = [
            ("name", &mut self.name),
            ("home", &mut self.home),
            ("version", &mut self.version),
            ("description", &mut self.description),
            ("icon", &mut self.icon),
            ("apiVersion", &mut self.api_version),
            ("condition", &mut self.condition),
            ("tags", &mut self.tags),
            ("appVersion", &mut self.app_version),
            ("kubeVersion", &mut self.kube_version),
            ("type", &mut self.kind),
        ];
        for (field, place) in texts {
            if map.contains_key(field) {
                *place = fields.text(field)?;
            }
        }
        if map.contains_key("sources") {
            self.sources = fields.texts("sources")?;
        }
        if map.contains_key("keywords") {
            self.keywords = fields.texts("keywords")?;
        }
        if map.contains_key("deprecated") {
            self.deprecated = fields.boolean("deprecated")?;
        }
        if let Some(annotations) = map.get("annotations").and_then(Json::as_object) {
            for (key, value) in annotations {
                let text =
                    scalar_text(value).ok_or_else(|| fields.mismatch("annotations", value, "string"))?;
                self.annotations.insert(key.clone(), Json::String(text));
            }
        }
        if map.contains_key("maintainers") {
            let maintainers = fields.objects("maintainers", "chart.Maintainer")?;
            self.maintainers = maintainers
                .into_iter()
                .map(maintainer)
                .collect::<Result<_, _>>()?;
        }
        if map
            .get("dependencies")
            .is_some_and(|dependencies| !dependencies.is_null())
        {
            let dependencies = fields.objects("dependencies", "chart.Dependency")?;
            self.dependencies = dependencies
                .into_iter()
                .map(dependency)
                .collect::<Result<_, _>>()?;
            self.has_dependencies = true;
        }
        Ok(())
    }

    /// Helm's checks.
    pub(super) fn validate(&mut self) -> Result<(), Error> {
        let invalid = |message: String| Err(Error::Chart(format!("validation: {message}")));
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            *text = sanitize(text);
        }
        if self.api_version.is_empty() {
            return invalid("chart.metadata.apiVersion is required".to_owned());
        }
        if self.name.is_empty() {
            return invalid("chart.metadata.name is required".to_owned());
        }
        if self.name.contains('/') || self.name == "." || self.name == ".." {
            return invalid(format!(
                "chart.metadata.name {} is invalid",
                quote(self.name.as_bytes())
            ));
        }
        if self.version.is_empty() {
            return invalid("chart.metadata.version is required".to_owned());
        }
        if Version::parse(&self.version).is_err() {
            return invalid(format!(
                "chart.metadata.version {} is invalid",
                quote(self.version.as_bytes())
            ));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return invalid("chart.metadata.type must be application or library".to_owned());
        }
        let mut names = Vec::new();
        for dependency in &self.dependencies {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if !dependency.alias.is_empty() && !dependency.alias.chars().all(allowed) {
                let name = quote(dependency.name.as_bytes());
                return invalid(format!(
                    "dependency {name} has disallowed characters in the alias"
                ));
            }
            let name = if dependency.alias.is_empty() {
                &dependency.name
            } else {
                &dependency.alias
            };
            if names.contains(&name) {
                let name = quote(name.as_bytes());
                return invalid(format!("more than one dependency with name or alias {name}"));
            }
            names.push(name);
        }
        Ok(())
    }
}

fn sanitize(text: &str) -> String {
    use fairway_text_gotemplate::text::{is_print, is_space};
    text.chars()
        .filter_map(|c| match c {
            c if is_space(c) => Some(' '),
            c if is_print(c) => Some(c),
            _ => None,
        })
        .collect()
}

fn maintainer(map: &Map<String, Json>) -> Result<Maintainer, Error> {
    let fields = Fields {
        map,
        of: "Maintainer",
    };
    Ok(Maintainer {
        name: fields.text("name")?,
        email: fields.text("email")?,
        url: fields.text("url")?,
    })
}

fn dependency(map: &Map<String, Json>) -> Result<Dependency, Error> {
    let fields = Fields {
        map,
        of: "Dependency",
    };
    let import_values = match map.get("import-values") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(items)) => items.clone(),
        Some(other) => return Err(fields.mismatch("import-values", other, "[]interface {}")),
    };
    Ok(Dependency {
        name: sanitize(&fields.text("name")?),
        version: sanitize(&fields.text("version")?),
        repository: sanitize(&fields.text("repository")?),
        condition: sanitize(&fields.text("condition")?),
        tags: fields.texts("tags")?,
        enabled: fields.boolean("enabled")?,
        import_values,
        alias: fields.text("alias")?,
    })
}
