//! Texts with parameters: `{{param}}`, or Go templates with sprig.

use std::cell::OnceCell;
use std::sync::LazyLock;

use fairway_text_gotemplate::value::from_json;
use fairway_text_gotemplate::{
    Fault, Func, Functions, Limits, Machine, MissingKey, NoHost, Param, Templates, Value as GoValue, arg,
    formats, parse, sprig,
};
use serde_json::{Map, Value};

use crate::{Error, Params, sanitize_name, slug};

/// How deep a template may nest.
const MAX_DEPTH: usize = 64;

/// How texts are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Renderer {
    /// Go templates, instead of `{{param}}`.
    pub go: bool,
    /// What a missing key of a Go template is.
    pub missing_key: MissingKey,
}

fn functions() -> &'static Functions {
    static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
        let mut functions = Functions::builtin();
        sprig::add(&mut functions);
        // What differs each time would make new Applications each time; the network is taken away by Argo CD, too.
        for name in sprig::DIFFERS_EACH_TIME.iter().chain(&["getHostByName"]) {
            functions.remove(name);
        }
        functions.add(formats::TABLE);
        functions.add(&[
            Func::new("normalize", &[Param::Str], |_, args| {
                Ok(GoValue::str(sanitize_name(&arg::text(args, 0))))
            }),
            Func::variadic("slugify", &[Param::Any], slugify),
        ]);
        functions
    });
    &FUNCTIONS
}

/// `slugify [MAX [SMART]] TEXT`.
fn slugify(_: &mut Machine<'_>, args: &[GoValue]) -> Result<GoValue, Fault> {
    let (mut max, mut smart) = (50, true);
    let Some((text, settings)) = args.split_last() else {
        return Ok(GoValue::str(""));
    };
    for setting in settings {
        match setting {
            GoValue::Bool(yes) => smart = *yes,
            other => max = usize::try_from(arg::int(std::slice::from_ref(other), 0)).unwrap_or(max),
        }
    }
    let text = sanitize_name(&arg::text(std::slice::from_ref(text), 0));
    Ok(GoValue::str(slug(&text, max, smart)))
}

impl Renderer {
    /// How an ApplicationSet wants its texts filled.
    pub fn of(spec: &Value) -> Result<Self, Error> {
        let mut renderer = Self {
            go: spec["goTemplate"] == true,
            ..Self::default()
        };
        for option in spec["goTemplateOptions"].as_array().into_iter().flatten() {
            renderer.missing_key = match option.as_str() {
                Some("missingkey=error") => MissingKey::Error,
                Some("missingkey=zero") => MissingKey::Zero,
                Some("missingkey=default" | "missingkey=invalid") => MissingKey::Invalid,
                _ => {
                    return Err(Error::Generator(format!(
                        "unrecognized option of goTemplateOptions: {option}"
                    )));
                }
            };
        }
        Ok(renderer)
    }

    /// A text with its parameters filled in.
    pub fn text(&self, text: &str, params: &Params) -> Result<String, Error> {
        self.filled(text, &Filling::new(params))
    }

    fn filled(&self, text: &str, filling: &Filling<'_>) -> Result<String, Error> {
        match self.go {
            true if !text.contains("{{") => Ok(text.to_owned()),
            true => go_template(text, filling.data(), self.missing_key),
            false => Ok(fill(text, filling.params)),
        }
    }

    /// A value with parameters filled into all its texts and keys.
    pub fn value(&self, value: &Value, params: &Params) -> Result<Value, Error> {
        self.value_at(value, &Filling::new(params), 0)
    }

    fn value_at(&self, value: &Value, filling: &Filling<'_>, depth: usize) -> Result<Value, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Generator("the template is nested too deeply".to_owned()));
        }
        Ok(match value {
            Value::String(text) => self.filled(text, filling)?.into(),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value_at(item, filling, depth + 1));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let mut out = Map::with_capacity(fields.len());
                for (name, field) in fields {
                    out.insert(
                        self.filled(name, filling)?,
                        self.value_at(field, filling, depth + 1)?,
                    );
                }
                Value::Object(out)
            }
            other => other.clone(),
        })
    }
}

/// Parameters, and what Go templates see of them, made once for all texts of an Application.
struct Filling<'a> {
    params: &'a Params,
    data: OnceCell<GoValue>,
}

impl<'a> Filling<'a> {
    fn new(params: &'a Params) -> Self {
        Self {
            params,
            data: OnceCell::new(),
        }
    }

    fn data(&self) -> &GoValue {
        self.data
            .get_or_init(|| from_json(&Value::Object(self.params.clone())))
    }
}

/// `{{param}}`; what is no parameter stays.
fn fill(text: &str, params: &Params) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start + 2..].find("}}") else {
            break;
        };
        let name = rest[start + 2..start + 2 + length].trim();
        out.push_str(&rest[..start]);
        match params.get(name) {
            Some(Value::String(value)) => out.push_str(value),
            Some(other) => out.push_str(&other.to_string()),
            None => out.push_str(&rest[start..start + length + 4]),
        }
        rest = &rest[start + length + 4..];
    }
    out.push_str(rest);
    out
}

fn go_template(text: &str, data: &GoValue, missing_key: MissingKey) -> Result<String, Error> {
    const NAME: &str = "";
    let fault = |reason: String| Error::Template {
        text: text.to_owned(),
        reason,
    };
    let functions = functions();
    let parsed = parse(NAME, text, functions).map_err(|error| fault(error.to_string()))?;
    let mut templates = Templates::default();
    templates.add(&parsed);
    let limits = Limits {
        depth: 50,
        work: 5_000_000,
        output: 4 << 20,
    };
    let mut machine = Machine::new(functions, &templates, &NoHost, limits).missing_key(missing_key);
    let out = machine
        .execute(NAME, data)
        .map_err(|error| fault(error.to_string()))?;
    String::from_utf8(out).map_err(|_| fault("the result is no text".to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(value: Value) -> Params {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn plain_parameters() {
        let params = params(json!({"name": "web", "path[0]": "apps", "values.x": "1", "path.basename": "b"}));
        let cases = [
            ("{{name}}-{{ path.basename }}", "web-b"),
            ("{{path[0]}}/{{values.x}}", "apps/1"),
            ("{{unknown}} {{name}}", "{{unknown}} web"),
            ("{{name", "{{name"),
            ("plain", "plain"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                Renderer::default().text(text, &params).unwrap(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn go_templates() {
        let params =
            params(json!({"name": "Web_App 1", "path": {"segments": ["a", "b"]}, "labels": {"k": "v"}}));
        let go = Renderer {
            go: true,
            missing_key: MissingKey::Invalid,
        };
        let cases = [
            ("{{ .name | normalize }}", "web-app-1"),
            ("{{ index .path.segments 1 }}", "b"),
            ("{{ .name | upper }}", "WEB_APP 1"),
            ("{{ if eq .labels.k \"v\" }}yes{{ end }}", "yes"),
            ("{{ slugify 7 true .name }}", "web-app"),
            ("{{ slugify 6 .name }}", "web"),
            ("{{ slugify 6 false .name }}", "web-ap"),
            ("{{ slugify \"feat/Some long branch\" }}", "feat-some-long-branch"),
            ("{{ toYaml .labels }}", "k: v"),
            ("{{ (fromYaml \"a: b\").a }}", "b"),
            ("{{ default \"x\" .missing }}", "x"),
            ("{{ .missing }}", "<no value>"),
        ];
        for (text, expected) in cases {
            assert_eq!(go.text(text, &params).unwrap(), expected, "{text}");
        }
        let strict = Renderer {
            missing_key: MissingKey::Error,
            ..go
        };
        let error = strict.text("{{ .missing }}", &params).unwrap_err().to_string();
        assert!(
            error.contains("{{ .missing }}") && error.contains("missing"),
            "{error}"
        );
        for text in [
            "{{ .a",
            "{{ env \"HOME\" }}",
            "{{ now }}",
            "{{ randAlpha 3 }}",
            "{{ range $i, $x := until 100000000 }}x{{ end }}",
        ] {
            assert!(go.text(text, &params).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_and_trees() {
        let params = params(json!({"a": "x"}));
        let value = json!({"{{a}}": ["{{a}}", {"n": 1, "b": true}]});
        assert_eq!(
            Renderer::default().value(&value, &params).unwrap(),
            json!({"x": ["x", {"n": 1, "b": true}]})
        );
        let options = json!({"goTemplate": true, "goTemplateOptions": ["missingkey=error"]});
        assert_eq!(Renderer::of(&options).unwrap().missing_key, MissingKey::Error);
        assert!(Renderer::of(&json!({"goTemplateOptions": ["nonsense"]})).is_err());
    }
}
