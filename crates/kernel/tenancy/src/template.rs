//! Go's templates with sprig, as the sync agent makes names, labels and values of fields with them.
//!
//! Templates come from providers and values from consumers, so a run is bounded, and what a template makes is short. A
//! copy must have the same name whenever it is asked for: there is no clock, no chance, and nothing that takes long.

use std::sync::LazyLock;

use fairway_text_gotemplate::value::from_json;
use fairway_text_gotemplate::{
    Fault, Func, Functions, Limits, Machine, NoHost, Param, Templates, Value as GoValue, arg, parse, sprig,
};
use serde_json::Value;

use crate::encode;

/// How long a template, and what it makes, may be.
const MAX_LENGTH: usize = 4096;
/// One run: far more than any name needs, and milliseconds at most.
const LIMITS: Limits = Limits {
    depth: 16,
    work: 100_000,
    output: 64 * 1024,
};
/// What messages call a template; the sync agent's name for it.
const NAME: &str = "inline";
/// What Go prints for a field that is not there. Nobody means it.
const NO_VALUE: &str = "<no value>";
/// What takes long by design, or is of no use in a name.
const UNFIT: &[&str] = &["buildCustomCert", "decryptAES", "derivePassword", "getHostByName"];

fn functions() -> &'static Functions {
    static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
        let mut functions = Functions::builtin();
        sprig::add(&mut functions);
        for name in sprig::DIFFERS_EACH_TIME.iter().chain(UNFIT) {
            functions.remove(name);
        }
        // What is not set has a hash, too: objects of the cluster have no namespace.
        functions.add(&[
            Func::new("sha3sum", &[Param::Any], |_, args| {
                Ok(GoValue::str(sha3(&word(arg::any(args, 0)))))
            }),
            Func::variadic("sha3short", &[Param::Any], sha3_short),
            Func::new("shortHash", &[Param::Any], |_, args| {
                Ok(GoValue::str(&sha1(&word(arg::any(args, 0)))[..20]))
            }),
        ]);
        functions
    });
    &FUNCTIONS
}

fn word(value: &GoValue) -> String {
    match value {
        GoValue::Nil => String::new(),
        other => arg::text(std::slice::from_ref(other), 0).into_owned(),
    }
}

/// `sha3short TEXT [LENGTH]`; in a pipeline the text comes last, so a number before it is the length.
fn sha3_short(_: &mut Machine<'_>, args: &[GoValue]) -> Result<GoValue, Fault> {
    let is_text = |value: &GoValue| matches!(value, GoValue::Nil | GoValue::Str(_));
    let (input, length) = match args {
        [input] => (input, 20),
        [input, length] if is_text(input) => (input, arg::int(std::slice::from_ref(length), 0)),
        [length, input] => (input, arg::int(std::slice::from_ref(length), 0)),
        _ => {
            let given = args.len().saturating_sub(1);
            let message = format!("sha3short: expected at most one length argument, got {given}");
            return Err(Fault::new(message));
        }
    };
    let Some(length) = usize::try_from(length).ok().filter(|it| *it > 0) else {
        return Err(Fault::new(format!("sha3short: invalid length {length}")));
    };
    let sum = sha3(&word(input));
    Ok(GoValue::str(&sum[..length.min(sum.len())]))
}

/// Renders a template with `data` as the dot. Space around the result is cut, as the sync agent does.
pub(crate) fn render(template: &str, data: &Value) -> Result<String, String> {
    let templates = read(template)?;
    let mut machine = Machine::new(functions(), &templates, &NoHost, LIMITS);
    let made = machine
        .execute(NAME, &from_json(data))
        .map_err(|error| format!("failed to evaluate: {error}"))?;
    let made = String::from_utf8(made).map_err(|_| "the result is no text".to_owned())?;
    let made = made.trim();
    if made.contains(NO_VALUE) {
        return Err("a field that the template uses is not set".to_owned());
    }
    if made.len() > MAX_LENGTH {
        return Err(format!("the result is longer than {MAX_LENGTH} bytes"));
    }
    Ok(made.to_owned())
}

/// Says what is wrong with a template, whatever it is given.
pub(crate) fn check(template: &str) -> Result<(), String> {
    read(template).map(|_| ())
}

fn read(template: &str) -> Result<Templates, String> {
    if template.len() > MAX_LENGTH {
        return Err(format!("the template is longer than {MAX_LENGTH} bytes"));
    }
    let parsed = parse(NAME, template, functions()).map_err(|error| format!("failed to parse: {error}"))?;
    let mut templates = Templates::default();
    templates.add(&parsed);
    Ok(templates)
}

/// The SHA-1 of a text, as forty hexadecimal digits.
pub(crate) fn sha1(text: &str) -> String {
    use sha1::Digest as _;
    encode::hex(&sha1::Sha1::digest(text.as_bytes()))
}

fn sha3(text: &str) -> String {
    use sha3::Digest as _;
    encode::hex(&sha3::Sha3_256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn data() -> Value {
        json!({
            "ClusterName": "1084s8ceexsehjm2",
            "ClusterPath": "root:org-acme:frontend",
            "Object": {
                "metadata": {"name": "My-VM", "namespace": "default", "labels": {"a/b": "c"}},
                "list": [1, 2], "replicas": 3_000_000,
            },
        })
    }

    #[test]
    fn what_is_made() {
        for (template, expected) in [
            ("plain", "plain"),
            ("{{ .ClusterName }}", "1084s8ceexsehjm2"),
            ("  {{.ClusterName}}-x ", "1084s8ceexsehjm2-x"),
            ("{{ .Object.metadata.name | lower }}", "my-vm"),
            ("{{ lower .Object.metadata.name | upper }}", "MY-VM"),
            (
                "ws-{{ .ClusterPath | trimPrefix \"root:\" | replace \":\" \"-\" }}-{{ .Object.metadata.namespace }}",
                "ws-org-acme-frontend-default",
            ),
            ("{{ index .Object.metadata.labels \"a/b\" }}", "c"),
            ("{{ index .Object.list 1 }}-{{ .Object.replicas }}", "2-3000000"),
            ("{{ .Object.metadata.annotations | default `none` }}", "none"),
            ("{{ trunc 4 .ClusterName }}{{ trunc -2 .ClusterName }}", "1084m2"),
            (
                "{{ printf \"%s-%d%%\" .Object.metadata.namespace 7 }}",
                "default-7%",
            ),
            ("a {{- \"b\" -}} c", "abc"),
            ("{{/* nothing */}}x", "x"),
            ("{{ (lower (trunc 2 .Object.metadata.name)) }}", "my"),
            ("{{ sha3short \"\" }}", "a7ffc6f8bf1ed76651c1"),
            ("{{ \"\" | sha3short 8 }}", "a7ffc6f8"),
            ("{{ sha3short \"\" 8 }}", "a7ffc6f8"),
            ("{{ sha3sum \"\" | trunc 8 }}", "a7ffc6f8"),
            (
                "{{ .Object.metadata.generateName | shortHash }}",
                "da39a3ee5e6b4b0d3255",
            ),
            ("{{ coalesce \"\" .Object.metadata.namespace }}", "default"),
            (
                "{{ if .Object.metadata.namespace }}in{{ else }}out{{ end }}",
                "in",
            ),
            (
                "{{ range $i, $part := splitList \":\" .ClusterPath }}{{ if $i }}-{{ end }}{{ $part }}{{ end }}",
                "root-org-acme-frontend",
            ),
            (
                "{{ with .Object.metadata }}{{ .name | lower }}.{{ $.ClusterName }}{{ end }}",
                "my-vm.1084s8ceexsehjm2",
            ),
            (
                "{{ $parts := splitList \":\" .ClusterPath }}{{ last $parts }}",
                "frontend",
            ),
        ] {
            assert_eq!(render(template, &data()).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_is_refused() {
        for (template, expected) in [
            ("{{ .Nothing }}", "a field that the template uses is not set"),
            (
                "{{ .ClusterName",
                "failed to parse: template: inline:1: unclosed action",
            ),
            (
                "{{ if .ClusterName }}x",
                "failed to parse: template: inline:1: unexpected EOF",
            ),
            (
                "{{ lower .Object.nothing }}",
                "failed to evaluate: template: inline:1:16: executing \"inline\" at <.Object.nothing>: invalid value; expected string",
            ),
            (
                "{{ sha3short \"a\" 0 }}",
                "failed to evaluate: template: inline:1:3: executing \"inline\" at <sha3short \"a\" 0>: error calling sha3short: sha3short: invalid length 0",
            ),
        ] {
            assert_eq!(render(template, &data()), Err(expected.to_owned()), "{template}");
        }
        for name in sprig::DIFFERS_EACH_TIME.iter().chain(UNFIT) {
            let refused = check(&format!("{{{{ {name} }}}}")).unwrap_err();
            assert!(
                refused.ends_with(&format!("function \"{name}\" not defined")),
                "{refused}"
            );
        }
        assert!(check("{{ if .A }}{{ range .B }}{{ .C }}{{ end }}{{ end }}").is_ok());
        for endless in [
            "{{ range until 1000000000 }}x{{ end }}",
            "{{ repeat 100000 \"x\" }}",
            "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
        ] {
            assert!(render(endless, &data()).is_err(), "{endless}");
        }
        assert!(render(&"x".repeat(5000), &data()).is_err());
        assert!(render("{{ repeat 5000 \"x\" }}", &data()).is_err());
    }

    proptest! {
        #[test]
        fn no_template_breaks_it(template in "[{}. a-z\"`|()0-9%-]{0,60}") {
            let _ = render(&template, &data());
        }
    }
}
