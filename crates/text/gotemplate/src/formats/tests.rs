//! Formats as Helm writes and reads them; the expected texts were printed by Helm 3.17.

use crate::tests::run_with;
use crate::{Functions, Limits};

fn run(text: &str) -> Result<String, String> {
    let mut functions = Functions::builtin();
    crate::sprig::add(&mut functions);
    functions.add(super::TABLE);
    run_with(&functions, Limits::default(), text, &serde_json::json!({}))
}

#[test]
fn toml_is_written_as_helm_writes_it() {
    let value = r#"(dict "a" 1 "b" (dict "c" 1.5 "d" (dict "x" "y" "l" (list 1 2 "a"))) "z" (list (dict "q" 1) (dict "q" 2)) "e" 1e6 "f" (list) "t" true "k.k" "v" "m" (dict))"#;
    let expected = "a = 1\ne = 1000000.0\nf = []\n\"k.k\" = \"v\"\nt = true\n\n[b]\n  c = 1.5\n  [b.d]\n    l = [1, 2, \"a\"]\n    x = \"y\"\n\n[m]\n\n[[z]]\n  q = 1\n\n[[z]]\n  q = 2\n";
    assert_eq!(run(&format!("{{{{ toToml {value} }}}}")).as_deref(), Ok(expected));
    assert_eq!(
        run(&format!("{{{{ toToml {value} | fromToml | toToml }}}}")).as_deref(),
        Ok(expected)
    );
}

#[test]
fn pretty_yaml_indents_lists() {
    let text = r#"{{ toYamlPretty (dict "a" (list 1 (dict "b" 1.0 "c" "yes" "d" nil "e" (list) "f" "x\ny")) "z" 1e6 "n" 3) }}"#;
    let expected = "a:\n  - 1\n  - b: 1\n    c: \"yes\"\n    d: null\n    e: []\n    f: |-\n      x\n      y\n\"n\": 3\nz: 1e+06";
    assert_eq!(run(text).as_deref(), Ok(expected));
}

#[test]
fn what_cannot_be_read_becomes_an_error_value() {
    let cases: &[(&str, &str)] = &[
        (
            "{{ (fromYaml \"- a\").Error }}",
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "{{ fromYamlArray \"[1, n]\" }} {{ fromYaml \"\" }} {{ (fromYaml \"a: 1000000\").a }}",
            "[1 false] map[] 1e+06",
        ),
        (
            "{{ (fromJson \"[\").Error }} {{ fromJsonArray \"{}\" }}",
            "unexpected end of JSON input [json: cannot unmarshal object into Go value of type []interface {}]",
        ),
        (
            "{{ (fromToml \"a = \").Error }}",
            "toml: line 1: expected a value, found \"\"",
        ),
        (
            "{{ (fromToml \"[a.b]\\nc = [1, 2]\\nd = 1979-05-27\").a.b.c }}",
            "[1 2]",
        ),
        (
            "{{ toYaml (dict \"a\" \"1\" \"b\" \"yes\" \"c\" 1e6 \"d\" (list 1)) }}",
            "a: \"1\"\nb: \"yes\"\nc: 1000000\nd:\n- 1",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(run(text).as_deref(), Ok(*expected), "{text}");
    }
}
