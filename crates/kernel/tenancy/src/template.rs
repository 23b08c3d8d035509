//! The part of Go's templates that names are made with: text, fields, pipelines, and functions of texts.
//!
//! A name is an expression, not a program: control structures, variables and definitions are refused with a message that
//! says so. Everything is bounded, because templates come from providers and values from consumers.

use serde_json::Value;

use crate::encode;

/// How long a template, and what it makes, may be.
const MAX_LENGTH: usize = 4096;
/// How deep expressions may nest.
const MAX_DEPTH: usize = 16;

const UNSET: &str = "a field that the template uses is not set";
const NO_TEXT: &str = "a list or an object cannot be part of a name";

/// Renders a template with `data` as the dot. Space around the result is cut, as the sync agent does.
pub(crate) fn render(template: &str, data: &Value) -> Result<String, String> {
    render_with(template, data, false)
}

/// `assumed`: every field is taken to be there.
fn render_with(template: &str, data: &Value, assumed: bool) -> Result<String, String> {
    if template.len() > MAX_LENGTH {
        return Err(format!("the template is longer than {MAX_LENGTH} bytes"));
    }
    let mut out = String::new();
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        let (before, after) = rest.split_at(start);
        let after = &after[2..];
        let end = after
            .find("}}")
            .ok_or_else(|| "an action is not closed: \"}}\" is missing".to_owned())?;
        let (action, tail) = (&after[..end], &after[end + 2..]);
        let (action, trim_before) = match action.strip_prefix("- ") {
            Some(action) => (action, true),
            None => (action, false),
        };
        let (action, trim_after) = match action.strip_suffix(" -") {
            Some(action) => (action, true),
            None => (action, false),
        };
        out.push_str(if trim_before { before.trim_end() } else { before });
        let action = action.trim();
        if !(action.starts_with("/*") && action.ends_with("*/")) {
            let tokens = tokens(action)?;
            let mut parser = Parser {
                tokens: &tokens,
                at: 0,
                data,
                assumed,
            };
            let value = parser.pipeline(0)?;
            if parser.at < tokens.len() {
                return Err(format!(
                    "unexpected {:?} in {action:?}",
                    tokens[parser.at].shown()
                ));
            }
            out.push_str(&text(&value)?);
        }
        rest = if trim_after { tail.trim_start() } else { tail };
        if out.len() > MAX_LENGTH {
            return Err(format!("the result is longer than {MAX_LENGTH} bytes"));
        }
    }
    out.push_str(rest);
    Ok(out.trim().to_owned())
}

/// Says what is wrong with a template, whatever it is given.
pub(crate) fn check(template: &str) -> Result<(), String> {
    match render_with(template, &Value::Null, true) {
        // What is thought of a value says nothing about values to come.
        Err(error)
            if ![UNSET, NO_TEXT, "wrong arguments"]
                .iter()
                .any(|it| error.starts_with(it)) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// `.Object.metadata.name`; the dot alone is no field at all.
    Fields(Vec<String>),
    Word(String),
    Text(String),
    Number(i64),
    Pipe,
    Open,
    Close,
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::Fields(fields) => format!(".{}", fields.join(".")),
            Self::Word(text) | Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Pipe => "|".to_owned(),
            Self::Open => "(".to_owned(),
            Self::Close => ")".to_owned(),
        }
    }
}

fn tokens(action: &str) -> Result<Vec<Token>, String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = action.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '|' => {
                tokens.push(Token::Pipe);
                1
            }
            '(' => {
                tokens.push(Token::Open);
                1
            }
            ')' => {
                tokens.push(Token::Close);
                1
            }
            '"' => {
                let end = closing_quote(rest)?;
                let literal = serde_json::from_str::<String>(&rest[..=end])
                    .map_err(|_| format!("{} is no text literal", &rest[..=end]))?;
                tokens.push(Token::Text(literal));
                end + 1
            }
            '`' => {
                let end = rest[1..]
                    .find('`')
                    .ok_or_else(|| "a text literal is not closed".to_owned())?;
                tokens.push(Token::Text(rest[1..=end].to_owned()));
                end + 2
            }
            '.' => {
                let end = rest.find(|c: char| !is_word(c) && c != '.').unwrap_or(rest.len());
                let fields = rest[1..end].split('.').filter(|it| !it.is_empty());
                tokens.push(Token::Fields(fields.map(str::to_owned).collect()));
                end
            }
            c if c.is_ascii_digit() || c == '-' => {
                let end = rest[1..]
                    .find(|c: char| !c.is_ascii_digit())
                    .map_or(rest.len(), |at| at + 1);
                let number = rest[..end]
                    .parse()
                    .map_err(|_| format!("{:?} is no number", &rest[..end]))?;
                tokens.push(Token::Number(number));
                end
            }
            c if is_word(c) => {
                let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                end
            }
            other => {
                return Err(format!(
                    "unexpected {other:?}: names are made of fields, functions and pipelines only"
                ));
            }
        };
        rest = rest[taken..].trim_start();
    }
    Ok(tokens)
}

/// Where a text literal that starts at the first character ends.
fn closing_quote(text: &str) -> Result<usize, String> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Ok(at),
            _ => {}
        }
    }
    Err("a text literal is not closed".to_owned())
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    data: &'a Value,
    assumed: bool,
}

impl Parser<'_> {
    /// `command | command | …`: each gets the result before it as its last argument.
    fn pipeline(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("expressions nest deeper than {MAX_DEPTH}"));
        }
        let mut value = self.command(None, depth)?;
        while self.tokens.get(self.at) == Some(&Token::Pipe) {
            self.at += 1;
            value = self.command(Some(value), depth)?;
        }
        Ok(value)
    }

    fn command(&mut self, piped: Option<Value>, depth: usize) -> Result<Value, String> {
        let Some(Token::Word(name)) = self.tokens.get(self.at) else {
            return match (self.operand(depth)?, piped) {
                (Some(value), None) => Ok(value),
                (Some(_), Some(_)) => Err("a value cannot take what is piped into it".to_owned()),
                (None, _) => Err("an expression is missing".to_owned()),
            };
        };
        let name = name.clone();
        self.at += 1;
        let mut arguments = Vec::new();
        while let Some(argument) = self.operand(depth)? {
            arguments.push(argument);
        }
        arguments.extend(piped);
        call(&name, &arguments)
    }

    fn operand(&mut self, depth: usize) -> Result<Option<Value>, String> {
        let value = match self.tokens.get(self.at) {
            Some(Token::Fields(_)) if self.assumed => Value::from("x"),
            Some(Token::Fields(fields)) => {
                let mut value = self.data;
                for field in fields {
                    value = value.get(field).unwrap_or(&Value::Null);
                }
                value.clone()
            }
            Some(Token::Text(text)) => Value::from(text.clone()),
            Some(Token::Number(number)) => Value::from(*number),
            Some(Token::Word(word)) if word == "true" || word == "false" => Value::from(word == "true"),
            Some(Token::Open) => {
                self.at += 1;
                let value = self.pipeline(depth + 1)?;
                if self.tokens.get(self.at) != Some(&Token::Close) {
                    return Err("\")\" is missing".to_owned());
                }
                value
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(value))
    }
}

/// A value as it is printed. Go prints `<no value>` for what is missing, which is never meant to be a name.
fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null => Err(UNSET.to_owned()),
        _ => Err(NO_TEXT.to_owned()),
    }
}

/// As an argument of a function of texts: what is missing is empty, as an unset namespace is.
fn word(value: &Value) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        other => text(other),
    }
}

/// The functions: those of the sync agent, and those of sprig that make one text of others.
fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let wrong = || format!("wrong arguments for {name}");
    let texts = || arguments.iter().map(word).collect::<Result<Vec<_>, _>>();
    let number = |value: &Value| value.as_i64().ok_or_else(wrong);
    let made = match (name, arguments) {
        ("sha3sum", [input]) => sha3(&word(input)?),
        ("sha3short", [input]) => sha3(&word(input)?)[..20].to_owned(),
        // The agent takes the text first and the length second; in a pipeline the text comes last.
        ("sha3short", [a, b]) => {
            let (input, length) = if a.is_number() { (b, a) } else { (a, b) };
            let length = usize::try_from(number(length)?).ok().filter(|it| *it > 0);
            let length = length.ok_or_else(|| "sha3short: the length must be positive".to_owned())?;
            let sum = sha3(&word(input)?);
            sum[..length.min(sum.len())].to_owned()
        }
        ("shortHash", [input]) => sha1(&word(input)?)[..20].to_owned(),
        ("lower", [input]) => word(input)?.to_lowercase(),
        ("upper", [input]) => word(input)?.to_uppercase(),
        ("trim", [input]) => word(input)?.trim().to_owned(),
        ("quote", [input]) => Value::from(word(input)?).to_string(),
        ("toString", [input]) => word(input)?,
        ("trimPrefix", [prefix, input]) => {
            let input = word(input)?;
            input.strip_prefix(&word(prefix)?).unwrap_or(&input).to_owned()
        }
        ("trimSuffix", [suffix, input]) => {
            let input = word(input)?;
            input.strip_suffix(&word(suffix)?).unwrap_or(&input).to_owned()
        }
        ("trimAll", [set, input]) => {
            let set = word(set)?;
            word(input)?.trim_matches(|c| set.contains(c)).to_owned()
        }
        ("replace", [from, to, input]) => {
            let (from, to, input) = (word(from)?, word(to)?, word(input)?);
            if !from.is_empty() && input.len() / from.len() * to.len() > MAX_LENGTH {
                return Err(format!("the result is longer than {MAX_LENGTH} bytes"));
            }
            input.replace(&from, &to)
        }
        ("trunc", [length, input]) => {
            let input: Vec<char> = word(input)?.chars().collect();
            let length = number(length)?;
            let kept = usize::try_from(length.unsigned_abs())
                .unwrap_or(usize::MAX)
                .min(input.len());
            if length < 0 {
                input[input.len() - kept..].iter().collect()
            } else {
                input[..kept].iter().collect()
            }
        }
        ("default", [fallback, input]) => {
            let given = word(input)?;
            if given.is_empty() { word(fallback)? } else { given }
        }
        ("coalesce", [_, ..]) => texts()?.into_iter().find(|it| !it.is_empty()).unwrap_or_default(),
        ("cat", [_, ..]) => texts()?.join(" "),
        ("print", [_, ..]) => texts()?.concat(),
        ("printf", [format, rest @ ..]) => printf(&word(format)?, rest)?,
        ("index", [value, keys @ ..]) => {
            let mut value = value;
            for key in keys {
                let found = match key {
                    Value::String(key) => value.get(key),
                    Value::Number(at) => at.as_u64().and_then(|at| value.get(usize::try_from(at).ok()?)),
                    _ => return Err(wrong()),
                };
                value = found.unwrap_or(&Value::Null);
            }
            return Ok(value.clone());
        }
        (
            "sha3sum" | "sha3short" | "shortHash" | "lower" | "upper" | "trim" | "quote" | "toString"
            | "trimPrefix" | "trimSuffix" | "trimAll" | "replace" | "trunc" | "default" | "coalesce" | "cat"
            | "print" | "printf" | "index",
            _,
        ) => return Err(wrong()),
        ("if" | "else" | "end" | "range" | "with" | "define" | "template" | "block", _) => {
            return Err(format!("{name:?} cannot be used in a name: write one expression"));
        }
        _ => return Err(format!("function {name:?} is not defined")),
    };
    Ok(Value::from(made))
}

/// `%s`, `%v`, `%d` and `%%`.
fn printf(format: &str, arguments: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let verb = rest[at + 1..].chars().next();
        match verb {
            Some('%') => out.push('%'),
            Some('s' | 'v' | 'd') => {
                let argument = arguments
                    .next()
                    .ok_or_else(|| "printf: an argument is missing".to_owned())?;
                out.push_str(&word(argument)?);
            }
            _ => return Err("printf: use %s, %v, %d or %%".to_owned()),
        }
        rest = &rest[at + 1 + verb.map_or(0, char::len_utf8)..];
    }
    out.push_str(rest);
    Ok(out)
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
            "Object": {"metadata": {"name": "My-VM", "namespace": "default", "labels": {"a/b": "c"}}, "list": [1, 2]},
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
            ("{{ index .Object.list 1 }}", "2"),
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
            (
                "{{ .Object.metadata.generateName | shortHash }}",
                "da39a3ee5e6b4b0d3255",
            ),
            ("{{ coalesce \"\" .Object.metadata.namespace }}", "default"),
        ] {
            assert_eq!(render(template, &data()).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_is_refused() {
        for (template, expected) in [
            ("{{ .Nothing }}", "a field that the template uses is not set"),
            ("{{ .Object }}", "a list or an object cannot be part of a name"),
            ("{{ .ClusterName", "an action is not closed: \"}}\" is missing"),
            (
                "{{ if .ClusterName }}x{{ end }}",
                "\"if\" cannot be used in a name: write one expression",
            ),
            ("{{ env \"HOME\" }}", "function \"env\" is not defined"),
            (
                "{{ $x := 1 }}",
                "unexpected '$': names are made of fields, functions and pipelines only",
            ),
            ("{{ lower }}", "wrong arguments for lower"),
            (
                "{{ lower 'a' }}",
                "unexpected '\\'': names are made of fields, functions and pipelines only",
            ),
            ("{{ }}", "an expression is missing"),
            (
                "{{ .ClusterName .ClusterName }}",
                "unexpected \".ClusterName\" in \".ClusterName .ClusterName\"",
            ),
            ("{{ (lower \"a\" }}", "\")\" is missing"),
            ("{{ \"a\" | \"b\" }}", "a value cannot take what is piped into it"),
            (
                "{{ sha3short 0 \"a\" }}",
                "sha3short: the length must be positive",
            ),
            ("{{ printf \"%x\" 1 }}", "printf: use %s, %v, %d or %%"),
            ("{{ \"open }}", "a text literal is not closed"),
        ] {
            assert_eq!(render(template, &data()), Err(expected.to_owned()), "{template}");
        }
        let deep = format!("{{{{ {}1{} }}}}", "(".repeat(40), ")".repeat(40));
        assert_eq!(
            render(&deep, &data()),
            Err("expressions nest deeper than 16".to_owned())
        );
        assert!(render(&"x".repeat(5000), &data()).is_err());
        let doubling = "{{ replace \"a\" \"aaaaaaaaaaaaaaaaaaaa\" (replace \"a\" \"aaaaaaaaaaaaaaaaaaaa\" (replace \"a\" \"aaaaaaaaaaaaaaaaaaaa\" \"aaaaaaaaaaaaaaaaaaaa\")) }}";
        assert!(render(doubling, &data()).is_err());
    }

    proptest! {
        #[test]
        fn no_template_breaks_it(template in "[{}. a-z\"`|()0-9%-]{0,60}") {
            let _ = render(&template, &data());
        }
    }
}
