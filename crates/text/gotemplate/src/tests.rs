//! Templates and what Go makes of them.

use crate::value::from_json;
use crate::{Fault, Functions, Host, Limits, Machine, MissingKey, Templates, Value, parse};

/// Time stands still, and chance is a row of numbers.
pub(crate) struct Fixed(std::cell::Cell<u64>);

impl Host for Fixed {
    fn now(&self) -> i128 {
        1_700_000_000_000_000_000
    }
    fn entropy(&self, buffer: &mut [u8]) {
        for byte in buffer {
            let state = self
                .0
                .get()
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            self.0.set(state);
            *byte = (state >> 56) as u8;
        }
    }
    fn ask(&self, question: &str, _: &[Value]) -> Result<Value, Fault> {
        Err(Fault::new(format!("nobody knows {question}")))
    }
}

pub(crate) fn run_with(
    functions: &Functions,
    limits: Limits,
    text: &str,
    data: &serde_json::Value,
) -> Result<String, String> {
    let parsed = parse("t.yaml", text, functions).map_err(|error| error.to_string())?;
    let mut templates = Templates::default();
    templates.add(&parsed);
    let host = Fixed(std::cell::Cell::new(7));
    let mut machine = Machine::new(functions, &templates, &host, limits).missing_key(MissingKey::Zero);
    let out = machine
        .execute("t.yaml", &from_json(data))
        .map_err(|fault| fault.to_string())?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn run(text: &str) -> Result<String, String> {
    let data = serde_json::json!({
        "s": "text", "n": 3, "f": 1.5, "big": 1e6, "t": true, "nil": null,
        "list": ["a", "b", "c"], "map": {"b": 2, "a": {"x": "y"}}, "empty": {}, "nums": [1.0, 2.0],
    });
    run_with(&Functions::builtin(), Limits::default(), text, &data)
}

#[test]
fn templates_print_what_go_prints() {
    let cases: &[(&str, &str)] = &[
        ("a {{- 1 -}} b", "a1b"),
        ("a {{- /* c */ -}} b", "ab"),
        (
            "{{ .s }} {{ .big }} {{ .missing }} {{ .nil }}",
            "text 1e+06 <no value> <no value>",
        ),
        (
            "{{ range $i, $e := .list }}{{ $i }}={{ $e }};{{ end }}",
            "0=a;1=b;2=c;",
        ),
        (
            "{{ range .list }}{{ if eq . \"b\" }}{{ continue }}{{ end }}{{ . }}{{ end }}",
            "ac",
        ),
        (
            "{{ range .list }}{{ if eq . \"b\" }}{{ break }}{{ end }}{{ . }}{{ end }}",
            "a",
        ),
        (
            "{{ range $k, $v := .map }}{{ $k }}:{{ $v }} {{ end }}",
            "a:map[x:y] b:2 ",
        ),
        ("{{ range .empty }}x{{ else }}none{{ end }}", "none"),
        ("{{ with .map.a }}{{ .x }}{{ else }}no{{ end }}", "y"),
        ("{{ with .missing }}x{{ else with .s }}{{ . }}{{ end }}", "text"),
        ("{{ if .missing }}1{{ else if .t }}2{{ else }}3{{ end }}", "2"),
        (
            "{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $x := 3 }}{{ $x }}{{ end }}{{ $x }}",
            "32",
        ),
        (
            "{{ define \"a\" }}[{{ . }}]{{ end }}{{ template \"a\" .s }}{{ template \"a\" }}",
            "[text][<no value>]",
        ),
        ("{{ block \"b\" .n }}<{{ . }}>{{ end }}", "<3>"),
        ("{{ printf \"%s-%d\" .s 3 | printf \"%q\" }}", "\"text-3\""),
        ("{{ and 1 0 2 }} {{ or 0 \"\" \"x\" }} {{ not 1 }}", "0 x false"),
        (
            "{{ len .list }} {{ index .list 1 }} {{ index .map \"a\" \"x\" }}",
            "3 b y",
        ),
        (
            "{{ slice .s 1 3 }} {{ html \"<a>\" }} {{ js \"it's\" }} {{ urlquery \"a b&c\" }}",
            "ex &lt;a&gt; it\\'s a+b%26c",
        ),
        (
            "{{ eq .n 3 }} {{ lt 1 2 }} {{ eq .s \"x\" \"text\" }} {{ ne nil .nil }}",
            "true true true false",
        ),
        ("{{ (index .map \"a\").x }} {{ .map.a.x }}", "y y"),
        (
            "{{ 'a' }} {{ 0x10 }} {{ 1e3 }} {{ 1_000 }} {{ -0 }} {{ `raw\\n` }} {{ \"\\u00e9\" }}",
            "97 16 1000 1000 0 raw\\n é",
        ),
        ("{{ $x := .missing }}{{ $x.y }}|", "<no value>|"),
        ("{{ println 1 \"a\" }}{{ print 1 2 \"a\" }}", "1 a\n1 2a"),
        (
            "{{ range $i, $_ := .list }}{{ with $i }}{{ . }}{{ end }}{{ end }}",
            "12",
        ),
        ("{{ true }}{{ false }}{{ .nums }}", "truefalse[1 2]"),
        ("{{- /* a */}}x{{/* b */ -}}  y", "xy"),
    ];
    for (text, expected) in cases {
        assert_eq!(run(text).as_deref(), Ok(*expected), "{text}");
    }
}

#[test]
fn mistakes_are_called_what_go_calls_them() {
    let cases: &[(&str, &str)] = &[
        (
            "{{ .s.x }}",
            "template: t.yaml:1:5: executing \"t.yaml\" at <.s.x>: can't evaluate field x in type interface {}",
        ),
        (
            "{{ .missing.x }}",
            "template: t.yaml:1:11: executing \"t.yaml\" at <.missing.x>: nil pointer evaluating interface {}.x",
        ),
        (
            "\n {{ range 3 }}{{ end }}",
            "template: t.yaml:2:10: executing \"t.yaml\" at <3>: range can't iterate over 3",
        ),
        ("{{ foo }}", "template: t.yaml:1: function \"foo\" not defined"),
        ("{{ $x }}", "template: t.yaml:1: undefined variable \"$x\""),
        ("{{ if }}{{ end }}", "template: t.yaml:1: missing value for if"),
        ("{{ end }}", "template: t.yaml:1: unexpected {{end}}"),
        ("{{ if 1 }}", "template: t.yaml:1: unexpected EOF"),
        (
            "{{ 1 | 2 }}",
            "template: t.yaml:1: non executable command in pipeline stage 2",
        ),
        ("a\n{{ \"x }}", "template: t.yaml:2: unterminated quoted string"),
        ("{{ .a", "template: t.yaml:1: unclosed action"),
        (
            "{{\n.a\n",
            "template: t.yaml:3: unclosed action started at t.yaml:1",
        ),
        ("{{ (1 }}", "template: t.yaml:1: unclosed left paren"),
        ("{{ break }}", "template: t.yaml:1: {{break}} outside {{range}}"),
        (
            "{{ len 3 }}",
            "template: t.yaml:1:3: executing \"t.yaml\" at <len 3>: error calling len: len of type int",
        ),
        (
            "{{ len }}",
            "template: t.yaml:1:3: executing \"t.yaml\" at <len>: wrong number of args for len: want 1 got 0",
        ),
        (
            "{{ lt 1 1.5 }}",
            "template: t.yaml:1:3: executing \"t.yaml\" at <lt 1 1.5>: error calling lt: incompatible types for comparison",
        ),
        (
            "{{ printf .n }}",
            "template: t.yaml:1:10: executing \"t.yaml\" at <.n>: wrong type for value; expected string; got int64",
        ),
        (
            "{{ template \"nope\" }}",
            "template: t.yaml:1:12: executing \"t.yaml\" at <{{template \"nope\"}}>: template \"nope\" not defined",
        ),
        (
            "{{ .s 1 }}",
            "template: t.yaml:1:3: executing \"t.yaml\" at <.s>: s is not a method but has arguments",
        ),
        (
            "{{ nil }}",
            "template: t.yaml:1:3: executing \"t.yaml\" at <nil>: nil is not a command",
        ),
        (
            "{{ define \"a\" }}1{{ end }}{{ define \"a\" }}2{{ end }}",
            "template: t.yaml:1: template: multiple definition of template \"a\"",
        ),
        (
            "{{ \"x\".y }}",
            "template: t.yaml:1: unexpected . after term \"\\\"x\\\"\"",
        ),
        (
            "{{ $x = 1 }}",
            "template: t.yaml:1:8: executing \"t.yaml\" at <1>: undefined variable: $x",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(run(text), Err((*expected).to_owned()), "{text}");
    }
}

#[test]
fn endless_templates_are_stopped() {
    let limits = Limits {
        depth: 50,
        work: 10_000,
        output: 1000,
    };
    let cases: &[(&str, &str)] = &[
        (
            "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
            "exceeded maximum template depth (50)",
        ),
        (
            "{{ range .l }}{{ range $.l }}{{ range $.l }}{{ range $.l }}{{ range $.l }}{{ end }}{{ end }}{{ end }}{{ end }}{{ end }}",
            "limit of 10000 steps",
        ),
        (
            "{{ range .l }}{{ range $.l }}{{ range $.l }}0123456789{{ end }}{{ end }}{{ end }}",
            "limit of 1000 bytes of output",
        ),
    ];
    let data = serde_json::json!({"l": vec![0; 20]});
    for (text, expected) in cases {
        let error = run_with(&Functions::builtin(), limits, text, &data).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let nested = format!(
        "{}1{}",
        "{{ (".to_owned() + &"(".repeat(5000),
        ")".repeat(5001) + " }}"
    );
    assert!(
        run(&nested)
            .unwrap_err()
            .contains("max expression depth exceeded")
    );
    let nested = "{{ if 1 }}".repeat(5000);
    assert!(
        run(&nested)
            .unwrap_err()
            .contains("max expression depth exceeded")
    );
}

#[test]
fn random_texts_end_without_a_panic() {
    // A small generator instead of a fuzzer: pieces that mean something, in no order.
    const PIECES: &[&str] = &[
        "{{",
        "}}",
        "{{-",
        "-}}",
        " ",
        "if ",
        "range ",
        "end",
        "else ",
        "with ",
        "define ",
        "\"a\"",
        "template ",
        ".x",
        ".",
        "$",
        "$x",
        ":=",
        "=",
        "|",
        "(",
        ")",
        "1",
        "1.5e3",
        "'a'",
        "`",
        "\"",
        "/*",
        "*/",
        "\n",
        "é",
        "nil",
        "true",
        "printf ",
        "index ",
        ",",
        "0x",
        "block ",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..(state % 24) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push_str(PIECES[(state % PIECES.len() as u64) as usize]);
        }
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let _ = run_with(
            &Functions::builtin(),
            Limits {
                depth: 20,
                work: 10_000,
                output: 100_000,
            },
            &text,
            &serde_json::json!({"x": [1, 2]}),
        );
    }
}
