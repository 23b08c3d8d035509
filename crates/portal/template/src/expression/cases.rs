//! Tables of texts and what they come to. What is expected was taken from Nunjucks 3.2 where the row is about its semantics.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn variables() -> Variables {
    Variables::default()
        .with(
            "values",
            &json!({
                "name": "web", "list": ["b", "a", "C"], "empty": [], "n": 3, "f": 1.5, "on": true, "off": false, "nothing": null,
                "nested": {"a": {"b": "deep"}}, "users": [{"name": "ann", "age": 30}, {"name": "Bob", "age": 4}],
                "text": "Hello, World", "repoUrl": "git.example.com?owner=team&repo=web",
            }),
        )
        .with("steps", &json!({"make-it": {"output": {"url": "https://x/y"}}}))
}

fn print(source: &str) -> Result<String, Error> {
    Template::read(source, Syntax::default())?.print(&variables(), Limits::default())
}

#[test]
fn texts_come_to() {
    let cases = [
        ("plain {{ untouched }}", "plain {{ untouched }}"),
        ("${{ values.name }}", "web"),
        ("a-${{values.name}}-b", "a-web-b"),
        ("${{ values['name'] }}", "web"),
        ("${{ steps['make-it'].output.url }}", "https://x/y"),
        ("${{ values.nested.a.b }}|${{ values.x.y.z }}|", "deep||"),
        (
            "[${{ values.nothing }}][${{ values.list }}][${{ values.nested }}]",
            "[][b,a,C][[object Object]]",
        ),
        (
            "${{ values.n + 1 }} ${{ values.n + 'x' }} ${{ 7 // 2 }} ${{ 2 ** 3 }} ${{ 7 % 4 }} ${{ 1 / 2 }}",
            "4 3x 3 8 3 0.5",
        ),
        ("${{ 'a' ~ 1 ~ values.missing }}", "a1undefined"),
        (
            "${{ 'yes' if values.on else 'no' }}${{ 'x' if values.off }}",
            "yes",
        ),
        (
            "${{ 1 == '1' }} ${{ 1 === '1' }} ${{ 1 !== 1 }}",
            "true false false",
        ),
        ("${{ not values.off and values.on or false }}", "true"),
        (
            "${{ 'a' in values.list }} ${{ 'z' not in values.list }} ${{ 'ell' in values.text }}",
            "true true true",
        ),
        ("${{ values.missing or 'otherwise' }}", "otherwise"),
        ("${{ -values.n }} ${{ -3 | abs }}", "-3 3"),
        ("{% if values.empty %}full{% else %}none{% endif %}", "full"),
        (
            "{% if values.empty.length %}full{% elif values.n > 2 %}three{% endif %}",
            "three",
        ),
        (
            "{% for x in values.list %}${{ loop.index }}${{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
            "1b,2a,3C",
        ),
        (
            "{% for x in values.none %}a{% else %}nobody{% endfor %}",
            "nobody",
        ),
        (
            "{% for k, v in values.nested.a %}${{ k }}=${{ v }}{% endfor %}",
            "b=deep",
        ),
        (
            "{% for a, b in [[1, 2], [3, 4]] %}${{ a + b }} {% endfor %}",
            "3 7 ",
        ),
        (
            "{% set x = 1 %}{% for y in [1, 2, 3] %}{% set x = x + y %}{% endfor %}${{ x }}",
            "7",
        ),
        ("{% set x %}a${{ values.n }}{% endset %}${{ x | upper }}", "A3"),
        (
            "{% macro hi(who, sign='!') %}Hi ${{ who }}${{ sign }}{% endmacro %}${{ hi('you') }}${{ hi('me', sign='?') }}",
            "Hi you!Hi me?",
        ),
        ("{% filter upper %}a${{ values.name }}{% endfilter %}", "AWEB"),
        ("{% raw %}${{ raw }}{% if %}{% endraw %}.", "${{ raw }}{% if %}."),
        ("a {#- gone -#} b", "ab"),
        ("a\n  {%- if true %}\n b{% endif -%}\n c", "a\n bc"),
        ("${{ {'a': {'b': 1}} | dump }}", r#"{"a":{"b":1}}"#),
        ("${{ \"}}\" }}", "}}"),
        (
            "${{ values.list | sort | join('-') }} ${{ values.list | length }} ${{ values.list | first }}${{ values.list | last }}",
            "a-b-C 3 bC",
        ),
        (
            "${{ values.users | sort(attribute='age') | join(',', 'name') }}",
            "Bob,ann",
        ),
        (
            "${{ values.users | sum('age') }} ${{ values.users | selectattr('age') | length }}",
            "34 2",
        ),
        (
            "${{ values.text | replace('o', '0') }} ${{ values.text | replace(r/[A-Z]/g, '_') }}",
            "Hell0, W0rld _ello, _orld",
        ),
        (
            "${{ values.text.toUpperCase() }} ${{ values.text.split(', ')[1] }} ${{ values.text.length }}",
            "HELLO, WORLD World 12",
        ),
        (
            "${{ values.text.slice(-5) }} ${{ values.text.substring(0, 5) }} ${{ values.text.startsWith('He') }}",
            "World Hello true",
        ),
        (
            "${{ values.list.includes('a') }} ${{ values.list.join('+') }} ${{ values.list.concat(['d']).length }}",
            "true b+a+C 4",
        ),
        (
            "${{ values.missing | default('d') }} ${{ '' | default('d', true) }} ${{ values.nothing | default('d') }}",
            "d d ",
        ),
        (
            "${{ values.name | capitalize }} ${{ 'two words' | title }} ${{ ' x ' | trim }}.",
            "Web Two Words x.",
        ),
        ("${{ 'a\nb' | indent(2) }}", "a\n  b"),
        (
            "${{ 'x y/z' | urlencode }} ${{ '<a>' | escape }} ${{ '3.7' | int }} ${{ '3.7' | float }}",
            "x%20y%2Fz &lt;a&gt; 3 3.7",
        ),
        ("${{ 42.55 | round(1) }} ${{ 42.5 | round }}", "42.6 43"),
        ("${{ [1, 2, 3, 4, 5] | batch(2) | dump }}", "[[1,2],[3,4],[5]]"),
        ("${{ 'long text that goes on' | truncate(9) }}", "long text..."),
        (
            "${{ values.repoUrl | parseRepoUrl | pick('owner') }} ${{ (values.repoUrl | parseRepoUrl).repo }} ${{ values.repoUrl | projectSlug }}",
            "team web team/web",
        ),
        (
            "${{ 'group:default/team' | parseEntityRef | pick('name') }}",
            "team",
        ),
        (
            "${{ 'ann' | parseEntityRef({defaultKind: 'user'}) | pick('kind') }}",
            "user",
        ),
        (
            "${{ 'Group:My-Space/Team' | parseEntityRef | dump }}",
            r#"{"kind":"Group","namespace":"My-Space","name":"Team"}"#,
        ),
        (
            "${{ {kind: 'API', name: 'Pets'} | parseEntityRef({defaultKind: 'x', defaultNamespace: 'Zoo'}) | dump }}",
            r#"{"kind":"API","namespace":"Zoo","name":"Pets"}"#,
        ),
        (
            "${{ {name: 'ann'} | parseEntityRef({defaultKind: 'User'}) | dump }}",
            r#"{"kind":"User","namespace":"default","name":"ann"}"#,
        ),
        (
            "${{ values.on is defined }} ${{ values.zip is undefined }} ${{ 4 is even }} ${{ 'a' is string }}",
            "true true true true",
        ),
        ("${{ range(3) | join }}", "012"),
    ];
    for (source, expected) in cases {
        assert_eq!(print(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn single_expressions_keep_their_type() {
    let cases = [
        ("${{ values.n }}", Some(json!(3))),
        ("${{values.list}}", Some(json!(["b", "a", "C"]))),
        ("${{ values.on }}", Some(json!(true))),
        ("${{ values.nested.a }}", Some(json!({"b": "deep"}))),
        ("${{ values.missing }}", None),
        ("${{ values.nothing }}", Some(Json::Null)),
        ("${{ values.n }} ", Some(json!("3 "))),
        ("${{ values.n }}${{ values.n }}", Some(json!("33"))),
        ("plain", Some(json!("plain"))),
        ("${{ values.n > 2 and 'x' }}", Some(json!("x"))),
    ];
    for (source, expected) in cases {
        let template = Template::read(source, Syntax::default()).unwrap();
        let value = template.value(&variables(), Limits::default()).unwrap();
        assert_eq!(value.to_json(), expected, "{source}");
    }
}

#[test]
fn white_space_goes_if_it_is_told_to() {
    let syntax = Syntax {
        trim_blocks: true,
        lstrip_blocks: true,
        ..Syntax::default()
    };
    let source = "a:\n  {% if values.on %}\n  - x\n  {% endif %}\nb\n";
    let read = Template::read(source, syntax).unwrap();
    assert_eq!(
        read.print(&variables(), Limits::default()).unwrap(),
        "a:\n  - x\nb\n"
    );
    let cookie = Syntax {
        start: "{{",
        ..Syntax::default()
    };
    let read = Template::read("{{ values.name }} ${{values.n}}", cookie).unwrap();
    assert_eq!(read.print(&variables(), Limits::default()).unwrap(), "web $3");
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        ("${{ values.name", "does not end"),
        ("a\n\n${{ 1 + }}", "line 3:"),
        ("{% if values.on %}", "if does not end"),
        ("{% endif %}", "endif has no beginning"),
        ("{% for x in y %}{% endif %}", "endif does not belong to for"),
        ("{% include 'x' %}", "include is not supported"),
        ("{% frobnicate %}", "is not a statement"),
        ("${{ values.name | nope }}", "no filter called \"nope\""),
        ("${{ nope() }}", "no function called \"nope\""),
        (
            "${{ values.missing.split(',') }}",
            "what is undefined has no method",
        ),
        ("${{ values.n is nope }}", "no test called"),
        ("${{ 'x' | replace(r/(?=a)/, '') }}", "look-around"),
        ("${{ 'x' | parseRepoUrl }}", "not the address of a repository"),
        ("${{ a b }}", "is not expected here"),
    ];
    for (source, expected) in cases {
        let error = print(source).unwrap_err().to_string();
        assert!(error.contains(expected), "{source}: {error}");
    }
}

#[test]
fn bombs_do_not_go_off() {
    let doubling = format!("{{% set x = 'xxxxxxxxxx' %}}{}", "{% set x = x ~ x %}".repeat(60));
    let nested = format!("${{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000));
    let chain = format!("${{{{ 1{} }}}}", " + 1".repeat(5000));
    let filters = format!("${{{{ 1{} }}}}", " | string".repeat(5000));
    let signs = format!("${{{{ {}1 }}}}", "-".repeat(5000));
    let nots = format!("${{{{ {}1 }}}}", "not ".repeat(5000));
    let blocks = "{% if 1 %}".repeat(5000);
    let loops = "{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}x{% endfor %}{% endfor %}{% endfor %}";
    let cases = [
        doubling.as_str(),
        "${{ 'x'.repeat(1000000000) }}",
        "${{ 'x'.padStart(1000000000) }}",
        "${{ 'x' | center(1000000000) }}",
        "${{ 'a\nb' | indent(1000000000) }}",
        "${{ range(1000000000) }}",
        "${{ range(100000) | join('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx') }}",
        loops,
        "{% macro m() %}${{ m() }}${{ m() }}{% endmacro %}${{ m() }}",
        nested.as_str(),
        chain.as_str(),
        filters.as_str(),
        signs.as_str(),
        blocks.as_str(),
        "{% set l = range(100000) %}{% for a in l %}{% set l = l.concat(l) %}{% endfor %}",
        "${{ 'x' | replace(r/((((a{100}){100}){100}){100})/, '') }}",
    ];
    for source in cases {
        let shown: String = source.chars().take(60).collect();
        assert!(print(source).is_err(), "{shown}");
    }
    assert_eq!(print(&nots).as_deref(), Ok("true"), "an even number of them");
}

proptest! {
    /// Whatever is written ends, and within its budget.
    #[test]
    fn any_text_ends(source in "[ a-z0-9${}%#|()\\[\\]'\"~.,=+*/-]{0,200}") {
        let _ = print(&source);
    }

    #[test]
    fn any_expression_ends(inside in "[ a-z0-9|()\\[\\]{}:'~.,=+*/<>!-]{0,80}") {
        let _ = print(&format!("${{{{ {inside} }}}}"));
        let _ = print(&format!("{{% for a in {inside} %}}${{{{ a }}}}{{% endfor %}}"));
    }

    /// Text without marks comes out as it went in.
    #[test]
    fn plain_text_is_kept(source in "[^{$]{0,200}") {
        prop_assert_eq!(print(&source).unwrap(), source);
    }

    /// A value that is dumped is the same when it is read again.
    #[test]
    fn dumped_values_are_read_again(text in ".{0,60}", number in -1_000_000_i64..1_000_000) {
        let variables = Variables::default().with("v", &json!({"t": text, "n": number}));
        let template = Template::read("${{ v | dump }}", Syntax::default()).unwrap();
        let printed = template.print(&variables, Limits::default()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Json>(&printed).unwrap(), json!({"t": text, "n": number}));
    }
}
