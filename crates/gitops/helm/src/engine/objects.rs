//! What templates find in their data: the chart, its files, the cluster.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine;
use fairway_text_gotemplate::formats::yaml_text;
use fairway_text_gotemplate::text::lossy;
use fairway_text_gotemplate::value::{
    ANY_MAP, Elem, Embedded, Entries, FieldType, ListType, Map, MapType, StructType,
};
use fairway_text_gotemplate::{Fault, Func, Machine, Param, Value, arg};

use crate::capabilities::Capabilities;
use crate::chart::{Dependency, File, Metadata};
use crate::error::Error;
use crate::glob::Glob;

type Answer = Result<Value, Fault>;

/// A map of anything.
pub(super) fn table(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::map(
        entries
            .into_iter()
            .map(|(key, value)| (key.as_bytes().into(), value))
            .collect(),
    )
}

/// `chartutil.Values`
pub(super) static VALUES: MapType = MapType {
    name: "chartutil.Values",
    elem: Elem::Any,
    methods: &[
        Func::new("AsMap", &[], |_, args| match arg::any(args, 0) {
            Value::Map(map) => Ok(Value::Map(map.retyped(&ANY_MAP))),
            other => Ok(other.clone()),
        }),
        Func::new("YAML", &[], |_, args| {
            Ok((yaml_text(arg::any(args, 0)) + "\n").into())
        }),
        Func::new("Table", &[Param::Str], |_, args| {
            let mut at = arg::any(args, 0).clone();
            let path = arg::text(args, 1);
            for name in path.split('.') {
                let next = at.as_map().and_then(|map| map.get(name.as_bytes()));
                at = match next {
                    Some(Value::Map(map)) => Value::Map(map),
                    _ => return Err(Fault::new(format!("\"{name}\" is not a table"))),
                };
            }
            Ok(match at {
                Value::Map(map) => Value::Map(map.retyped(&VALUES)),
                other => other,
            })
        }),
        Func::new("PathValue", &[Param::Str], |_, args| {
            let mut at = arg::any(args, 0).clone();
            let path = arg::text(args, 1);
            for name in path.split('.') {
                let next = at.as_map().and_then(|map| map.get(name.as_bytes()));
                at = next.ok_or_else(|| Fault::new(format!("\"{name}\" is not a value")))?;
            }
            match at {
                Value::Map(_) => Err(Fault::new(format!("\"{path}\" is not a value"))),
                value => Ok(value),
            }
        }),
    ],
};

/// What a template knows of itself.
pub(super) fn template(path: &str, base: &str) -> Value {
    let entries = Entries::from([
        (b"Name".as_slice().into(), Value::from(path)),
        (b"BasePath".as_slice().into(), Value::from(base)),
    ]);
    Value::Map(Map::typed(&VALUES, entries))
}

/// `engine.files`
static FILES: MapType = MapType {
    name: "engine.files",
    elem: Elem::Bytes,
    methods: &[
        Func::new("Get", &[Param::Str], |_, args| Ok(Value::Str(content(args)))),
        Func::new("GetBytes", &[Param::Str], |_, args| {
            Ok(Value::Bytes(content(args)))
        }),
        Func::new("Glob", &[Param::Str], glob),
        Func::new("AsConfig", &[], |machine, args| {
            flat(machine, args, |bytes| Value::Str(bytes.clone()))
        }),
        Func::new("AsSecrets", &[], |machine, args| {
            flat(machine, args, |bytes| {
                base64::engine::general_purpose::STANDARD.encode(bytes).into()
            })
        }),
        Func::new("Lines", &[Param::Str], |machine, args| {
            let text = content(args);
            machine.spend_bytes(text.len())?;
            if text.is_empty() {
                return Ok(Value::strings(Vec::<&[u8]>::new()));
            }
            let text = text.strip_suffix(b"\n").unwrap_or(&text);
            Ok(Value::strings(text.split(|&byte| byte == b'\n')))
        }),
    ],
};

fn content(args: &[Value]) -> Arc<[u8]> {
    match arg::map(args, 0).and_then(|files| files.get(arg::bytes(args, 1))) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => Arc::from(b"".as_slice()),
    }
}

fn glob(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let pattern = Glob::new(&arg::text(args, 1));
    let mut found = Entries::new();
    for (name, data) in arg::map(args, 0).map(Map::entries).unwrap_or_default() {
        machine.spend(1)?;
        if pattern.matches(&lossy(&name)) {
            found.insert(name, data);
        }
    }
    Ok(Value::Map(Map::typed(&FILES, found)))
}

/// The files by their last names, as YAML.
fn flat(machine: &mut Machine<'_>, args: &[Value], show: fn(&Arc<[u8]>) -> Value) -> Answer {
    let mut entries = Entries::new();
    for (path, data) in arg::map(args, 0).map(Map::entries).unwrap_or_default() {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        if let Value::Bytes(bytes) = data {
            machine.spend_bytes(bytes.len())?;
            entries.insert(name.into(), show(&bytes));
        }
    }
    Ok(yaml_text(&Value::map(entries)).into())
}

/// Why a file that a template asked for could not be read, if one could not.
#[derive(Clone, Default)]
pub(super) struct Unreadable(Rc<RefCell<Option<Error>>>);

impl Unreadable {
    pub(super) fn take(&self) -> Option<Error> {
        self.0.take()
    }
}

/// The files of a chart, which are read when a template looks for one.
pub(super) fn files(files: &Arc<Vec<File>>, unreadable: &Unreadable) -> Value {
    let (files, unreadable) = (files.clone(), unreadable.clone());
    let read = move || {
        let mut entries = Entries::new();
        for file in files.iter() {
            match file.data.read() {
                Ok(bytes) => {
                    entries.insert(file.name.as_bytes().into(), Value::Bytes(bytes));
                }
                Err(error) => *unreadable.0.borrow_mut() = Some(error),
            }
        }
        entries
    };
    Value::Map(Map::lazy(&FILES, Box::new(read)))
}

const fn field(name: &'static str, json: &'static str, omit_empty: bool) -> FieldType {
    FieldType {
        name,
        json,
        omit_empty,
    }
}

static CHART: StructType = StructType {
    name: "struct { chart.Metadata; IsRoot bool }",
    pointer: false,
    fields: &[
        field("Name", "name", true),
        field("Home", "home", true),
        field("Sources", "sources", true),
        field("Version", "version", true),
        field("Description", "description", true),
        field("Keywords", "keywords", true),
        field("Maintainers", "maintainers", true),
        field("Icon", "icon", true),
        field("APIVersion", "apiVersion", true),
        field("Condition", "condition", true),
        field("Tags", "tags", true),
        field("AppVersion", "appVersion", true),
        field("Deprecated", "deprecated", true),
        field("Annotations", "annotations", true),
        field("KubeVersion", "kubeVersion", true),
        field("Dependencies", "dependencies", true),
        field("Type", "type", true),
        field("IsRoot", "IsRoot", false),
    ],
    methods: &[],
    display: None,
    is_text: false,
    embedded: Some(Embedded {
        name: "Metadata",
        ty: "chart.Metadata",
        fields: 17,
    }),
};

static MAINTAINER: StructType = StructType {
    name: "*chart.Maintainer",
    pointer: true,
    fields: &[
        field("Name", "name", true),
        field("Email", "email", true),
        field("URL", "url", true),
    ],
    methods: &[],
    display: None,
    is_text: false,
    embedded: None,
};

static DEPENDENCY: StructType = StructType {
    name: "*chart.Dependency",
    pointer: true,
    fields: &[
        field("Name", "name", false),
        field("Version", "version", true),
        field("Repository", "repository", false),
        field("Condition", "condition", true),
        field("Tags", "tags", true),
        field("Enabled", "enabled", true),
        field("ImportValues", "import-values", true),
        field("Alias", "alias", true),
    ],
    methods: &[],
    display: None,
    is_text: false,
    embedded: None,
};

static MAINTAINERS: ListType = ListType {
    name: "[]*chart.Maintainer",
    elem: Elem::Other,
    methods: &[],
};
static DEPENDENCIES: ListType = ListType {
    name: "[]*chart.Dependency",
    elem: Elem::Other,
    methods: &[],
};
static ANNOTATIONS: MapType = MapType {
    name: "map[string]string",
    elem: Elem::String,
    methods: &[],
};

pub(super) fn chart(metadata: &Metadata, is_root: bool) -> Value {
    let text = |text: &str| Value::from(text);
    let maintainers = metadata.maintainers.iter().map(|maintainer| {
        let fields = vec![
            text(&maintainer.name),
            text(&maintainer.email),
            text(&maintainer.url),
        ];
        Value::structure(&MAINTAINER, fields)
    });
    let annotations = metadata
        .annotations
        .iter()
        .map(|(key, value)| (key.as_bytes().into(), text(value.as_str().unwrap_or_default())));
    let fields = vec![
        text(&metadata.name),
        text(&metadata.home),
        Value::strings(&metadata.sources),
        text(&metadata.version),
        text(&metadata.description),
        Value::strings(&metadata.keywords),
        Value::typed_list(&MAINTAINERS, maintainers.collect()),
        text(&metadata.icon),
        text(&metadata.api_version),
        text(&metadata.condition),
        text(&metadata.tags),
        text(&metadata.app_version),
        Value::Bool(metadata.deprecated),
        Value::Map(Map::typed(&ANNOTATIONS, annotations.collect())),
        text(&metadata.kube_version),
        Value::typed_list(
            &DEPENDENCIES,
            metadata.dependencies.iter().map(dependency).collect(),
        ),
        text(&metadata.kind),
        Value::Bool(is_root),
    ];
    Value::structure(&CHART, fields)
}

fn dependency(dependency: &Dependency) -> Value {
    let imports = dependency
        .import_values
        .iter()
        .map(fairway_text_gotemplate::value::from_json);
    let fields = vec![
        dependency.name.as_str().into(),
        dependency.version.as_str().into(),
        dependency.repository.as_str().into(),
        dependency.condition.as_str().into(),
        Value::strings(&dependency.tags),
        Value::Bool(dependency.enabled),
        Value::list(imports.collect()),
        dependency.alias.as_str().into(),
    ];
    Value::structure(&DEPENDENCY, fields)
}

static KUBE_VERSION: StructType = StructType {
    name: "chartutil.KubeVersion",
    pointer: false,
    fields: &[
        field("Version", "Version", false),
        field("Major", "Major", false),
        field("Minor", "Minor", false),
    ],
    methods: &[
        Func::new("String", &[], |_, args| Ok(version_text(args))),
        Func::new("GitVersion", &[], |_, args| Ok(version_text(args))),
    ],
    is_text: false,
    embedded: None,
    display: Some(|value| {
        value
            .field(b"Version")
            .and_then(Value::as_str)
            .map_or_else(String::new, |text| lossy(text).into_owned())
    }),
};

fn version_text(args: &[Value]) -> Value {
    match arg::any(args, 0) {
        Value::Struct(version) => version.field(b"Version").cloned().unwrap_or_default(),
        other => other.clone(),
    }
}

static VERSION_SET: ListType = ListType {
    name: "chartutil.VersionSet",
    elem: Elem::String,
    methods: &[Func::new("Has", &[Param::Str], |machine, args| {
        let Value::List(versions) = arg::any(args, 0) else {
            return Ok(Value::Bool(false));
        };
        machine.spend(versions.items.len() as u64 / 8)?;
        let wanted = arg::bytes(args, 1);
        Ok(Value::Bool(
            versions
                .items
                .iter()
                .any(|item| item.as_str().is_some_and(|text| **text == *wanted)),
        ))
    })],
};

static BUILD_INFO: StructType = StructType {
    name: "version.BuildInfo",
    pointer: false,
    fields: &[
        field("Version", "version", true),
        field("GitCommit", "git_commit", true),
        field("GitTreeState", "git_tree_state", true),
        field("GoVersion", "go_version", true),
    ],
    methods: &[],
    display: None,
    is_text: false,
    embedded: None,
};

static CAPABILITIES: StructType = StructType {
    name: "*chartutil.Capabilities",
    pointer: true,
    fields: &[
        field("KubeVersion", "KubeVersion", false),
        field("APIVersions", "APIVersions", false),
        field("HelmVersion", "HelmVersion", false),
    ],
    methods: &[],
    display: None,
    is_text: false,
    embedded: None,
};

/// What the Helm whose behaviour this is says of itself.
const HELM: [&str; 4] = [
    "v3.17.3",
    "e4da49785aa6e6ee2b86efd5dd9e43400318262b",
    "clean",
    "go1.23.7",
];

pub(super) fn capabilities(capabilities: &Capabilities) -> Value {
    let version = &capabilities.kube_version;
    let kube = vec![
        version.version.as_str().into(),
        version.major.as_str().into(),
        version.minor.as_str().into(),
    ];
    let versions = capabilities
        .api_versions
        .iter()
        .map(|text| Value::from(text.as_str()))
        .collect();
    let fields = vec![
        Value::structure(&KUBE_VERSION, kube),
        Value::typed_list(&VERSION_SET, versions),
        Value::structure(&BUILD_INFO, HELM.iter().map(|text| Value::from(*text)).collect()),
    ];
    Value::structure(&CAPABILITIES, fields)
}
