//! The built-in golden path filled in: what its skeletons come to with the answers of people, and of people who mean harm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fairway_portal_template::answers;
use fairway_portal_template::expression::Variables;
use fairway_portal_template::files::{File, Files};
use fairway_portal_template::input;
use fairway_portal_template::skeleton::{self, Options};
use fairway_portal_template::template::Template;
use fairway_text_yaml::{Limits, documents, from_str};
use serde_json::{Map, Value, json};

/// Nobody has the other half of it.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0 nobody@example";

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/golden-paths/virtual-machine")
}

fn template() -> &'static Template {
    static READ: OnceLock<Template> = OnceLock::new();
    READ.get_or_init(|| {
        let text = std::fs::read_to_string(place().join("template.yaml")).unwrap();
        Template::read(&from_str(&text, Limits::default()).unwrap()).unwrap()
    })
}

/// The files of a directory beside the template.
fn beside(directory: &str) -> Files {
    fn each(at: &Path, root: &Path, files: &mut Files) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => each(&path, root, files),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                    files
                        .write(name, File::new(std::fs::read(&path).unwrap()))
                        .unwrap();
                }
            }
        }
    }
    let mut files = Files::default();
    let root = place().join(directory);
    each(&root, &root, &mut files);
    files
}

/// What the steps that fetch write, and what is shown in the end; or why the answers are not taken.
fn made(given: Value) -> Result<(BTreeMap<String, String>, Value), String> {
    let Value::Object(given) = given else {
        panic!("answers are a map")
    };
    let template = template();
    let answers = answers::judge(template, &given).map_err(|complaints| {
        let said: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        said.join("; ")
    })?;
    let output =
        |repository: &str| json!({"output": {"remoteUrl": repository, "repoContentsUrl": repository}});
    let variables = Variables::default()
        .with("parameters", &Value::Object(answers.values))
        .with("context", &json!({"gateway": {"port": ":8443"}}))
        .with(
            "steps",
            &json!({"publish": output("https://git.example/acme/web.git")}),
        );
    let resolved = |value: &Value| input::resolve(value, &variables, "input").unwrap();
    let mut written = BTreeMap::new();
    for step in template
        .steps
        .iter()
        .filter(|step| step.action == "fetch:template")
    {
        let condition = step.condition.as_ref().and_then(&resolved);
        if step.condition.is_some() && !fairway_portal_template::template::holds(condition.as_ref()) {
            continue;
        }
        let input = resolved(&step.input).unwrap();
        let options = Options {
            trim_blocks: true,
            lstrip_blocks: true,
            ..Options::default()
        };
        let skeleton = beside(input["url"].as_str().unwrap().trim_start_matches("./"));
        let values = Variables::default().with("values", &input["values"]);
        let target = input["targetPath"].as_str().map(|it| format!("{it}/"));
        for (path, file) in skeleton::render(&skeleton, &values, &options)?.iter() {
            let path = format!("{}{path}", target.as_deref().unwrap_or_default());
            written.insert(path, file.text().unwrap().to_owned());
        }
    }
    Ok((written, resolved(&template.output).unwrap()))
}

/// What is in the manifests, by kind and name.
fn objects(files: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let manifests = files.iter().filter(|(path, _)| path.ends_with(".yaml"));
    let all = manifests.flat_map(|(path, text)| {
        let found = documents(text, Limits::default());
        found.unwrap_or_else(|error| panic!("{path}: {error}\n{text}"))
    });
    let named = |object: Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        (
            format!("{} {}", text("/kind"), text("/metadata/name")),
            object.clone(),
        )
    };
    all.map(named).collect()
}

/// The names of all fields in an object, wherever they are; in text that is YAML itself, too.
fn fields(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                found.push(format!("{at}.{key}"));
                fields(inner, &format!("{at}.{key}"), found);
            }
        }
        Value::Array(items) => {
            for item in items {
                fields(item, &format!("{at}[]"), found);
            }
        }
        Value::String(text) if at.ends_with(".userdata") => {
            fields(&from_str(text, Limits::default()).unwrap(), at, found);
        }
        _ => {}
    }
}

fn shape(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for object in objects(files).values() {
        let kind = object["kind"].as_str().unwrap_or_default();
        fields(object, kind, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn with(mut given: Value, name: &str, value: &Value) -> Value {
    given[name] = value.clone();
    given
}

#[test]
fn whoever_has_a_token_of_an_issuer_may_call() {
    let given = json!({
        "name": "web", "sshKey": KEY, "connectivity": true, "host": "shop.example.com", "auth": "oidc",
        "issuerUrl": "https://id.example/realms/acme", "rateLimit": 7,
    });
    let (files, output) = made(given).unwrap();
    let objects = objects(&files);
    let kinds: Vec<&str> = objects.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        [
            "APIProduct web",
            "AuthPolicy web",
            "Component web",
            "Gateway web",
            "HTTPRoute web",
            "Namespace user-vms",
            "PlanPolicy web-plans",
            "RateLimitPolicy web",
            "Route web",
            "Secret web-cloud-init",
            "Secret web-ssh",
            "Service web",
            "VirtualMachine web",
        ]
    );
    assert_eq!(
        objects["AuthPolicy web"]["spec"]["rules"],
        json!({"authentication": {"oidc": {"jwt": {"issuerUrl": "https://id.example/realms/acme"}}}}),
        "a token, and no key beside it"
    );
    assert_eq!(
        objects["HTTPRoute web"]["spec"]["hostnames"],
        json!(["shop.example.com"])
    );
    assert_eq!(
        objects["RateLimitPolicy web"]["spec"]["overrides"]["limits"]["everybody"]["rates"][0]["limit"],
        7
    );
    // Keys are no way in here, and nobody is told how to get one.
    let shown = output.to_string();
    assert!(shown.contains("https://shop.example.com:8443"), "{shown}");
    let texts = output["text"].as_array().unwrap();
    let about_keys = texts
        .iter()
        .find(|text| text["title"] == "Get an API key")
        .unwrap();
    assert_eq!(about_keys["if"], false, "{about_keys}");

    let refused = made(json!({"name": "web", "sshKey": KEY, "connectivity": true, "auth": "oidc"}));
    let refused = refused.unwrap_err();
    assert!(refused.contains("issuerUrl: an answer is required"), "{refused}");
}

/// What people with bad intentions answer is refused, or comes out as the very text that it was, in its own field and nowhere else.
#[test]
fn hostile_answers_stay_answers() {
    let plain = json!({"name": "web", "sshKey": KEY, "connectivity": true, "packages": ["curl"]});
    let expected = shape(&made(plain.clone()).unwrap().0);
    let hash = json!("$6$abcdefgh");
    let with_hash = shape(&made(with(plain.clone(), "passwordHash", &hash)).unwrap().0);
    let injections = [
        // YAML
        "x\"\nkind: ClusterRoleBinding",
        "x: {y: z}",
        "x\n---\nkind: Secret",
        "*alias",
        "&anchor x",
        "!!python/object/apply:os.system [id]",
        "{{ 7*7 }}",
        "${{ secrets.token }}",
        "{% raw %}",
        "x # comment",
        "x\u{85}kind: Pod",
        "x\u{2028}kind: Pod",
        "- x",
        "|",
        "\u{feff}x",
        // Shell
        "x; rm -rf /",
        "$(id)",
        "`id`",
        "x && id",
        "-oProxyCommand=id",
        "x' 'y",
        "x\\",
        "x\0y",
        // URLs and paths
        "../../etc/passwd",
        "x/../y",
        "x?repo=other&owner=root",
        "x#fragment",
        "user:password@host",
        "x@evil.example",
        "%2e%2e%2f",
        "javascript:alert(1)",
        "//evil.example/x",
        "<script>alert(1)</script>",
        " ",
    ];
    let names = [
        "name",
        "namespace",
        "host",
        "user",
        "image",
        "disk",
        "owner",
        "size",
        "auth",
        "plan",
    ];
    for (name, injection) in names
        .iter()
        .flat_map(|name| injections.iter().map(move |injection| (*name, *injection)))
    {
        for answer in [injection.to_owned(), format!("a{injection}")] {
            let Ok((files, _)) = made(with(plain.clone(), name, &json!(answer))) else {
                continue;
            };
            // A reference to an owner may have slashes and dots: it is a text of the catalog, and no path.
            assert!(name == "owner", "{name}: {answer:?} was taken");
            assert_eq!(shape(&files), expected, "{name}: {answer:?}");
            let owner = &objects(&files)["Component web"]["spec"]["owner"];
            assert_eq!(owner, answer.as_str(), "it is what was answered");
        }
    }
    for injection in injections {
        let refused = made(with(plain.clone(), "packages", &json!(["curl", injection])));
        assert!(refused.is_err(), "packages: {injection:?} was taken");
        // Letters of a hash are slashes and dots, too.
        let hash = format!("$6$abcdefgh{injection}");
        if let Ok((files, _)) = made(with(plain.clone(), "passwordHash", &json!(hash))) {
            assert_eq!(shape(&files), with_hash, "passwordHash: {injection:?}");
        }
    }
    // A key's comment may be nearly anything.
    for injection in injections {
        let key = format!("{} {injection}", KEY.rsplit_once(' ').unwrap().0);
        let Ok((files, _)) = made(with(plain.clone(), "sshKey", &json!(key))) else {
            assert!(
                injection.contains(['\n', '\r', '\0']),
                "{injection:?} is a comment"
            );
            continue;
        };
        assert_eq!(shape(&files), expected, "sshKey: {injection:?}");
        let objects = objects(&files);
        assert_eq!(objects["Secret web-ssh"]["stringData"]["key"], key.as_str());
    }
    for key in [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "ssh-ed25519",
        "command=\"id\" ssh-ed25519 AAAA",
        "ssh-ed25519 AAAA\nssh-ed25519 BBBB",
        "ssh-ed25519 AA AA\r\nx",
    ] {
        assert!(
            made(with(plain.clone(), "sshKey", &json!(key))).is_err(),
            "{key:?}"
        );
    }
    for issuer in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://x\nkind: Pod",
        "https://x y",
        "//evil.example",
    ] {
        let given = with(plain.clone(), "auth", &json!("oidc"));
        assert!(
            made(with(given, "issuerUrl", &json!(issuer))).is_err(),
            "{issuer:?}"
        );
    }
}

/// A text where a number was meant, a list where a text was meant: refused by its type, and never printed.
#[test]
fn answers_of_another_kind_are_refused() {
    let plain = json!({"name": "web", "sshKey": KEY, "connectivity": true});
    let values = [
        json!({"toString": "x"}),
        json!(["x"]),
        json!(null),
        json!(1),
        json!(true),
    ];
    for name in ["name", "namespace", "host", "user", "sshKey", "packages", "image"] {
        for value in &values {
            let is_list = name == "packages" && value.is_array();
            let refused = made(with(plain.clone(), name, value));
            assert!(is_list || refused.is_err(), "{name}: {value} was taken");
        }
    }
    for value in [json!("1\n x: y"), json!(0), json!(1.5), json!("60")] {
        assert!(
            made(with(plain.clone(), "rateLimit", &value)).is_err(),
            "rateLimit: {value}"
        );
    }
    let none = Map::new();
    let refused = made(Value::Object(none)).unwrap_err();
    assert!(
        refused.contains("name: an answer is required") && refused.contains("sshKey: an answer"),
        "{refused}"
    );
}
