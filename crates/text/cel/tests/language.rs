//! The language itself: each line is an expression that must be true, fail to compile, or fail to evaluate.

// Helpers outside test functions are test code too.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use fairway_text_cel::{Activation, Env, Error, Library, Type, Value, eval};

fn env() -> Env {
    Env::new()
        .with_library(Library::Bindings)
        .with_variable("x", Type::Int)
        .with_variable("d", Type::Dyn)
        .with_variable("l", Type::list(Type::Int))
        .with_variable("m", Type::map(Type::String, Type::Int))
}

fn run(source: &str) -> Result<Value<'static>, String> {
    let program = env().compile(source).map_err(|errors| errors[0].to_string())?;
    let l = Value::list(vec![Value::Int(1), Value::Int(2), Value::Int(3)]);
    let activation = Activation::new()
        .bind("x", Value::Int(7))
        .bind("d", Value::string("dyn"))
        .bind("l", l);
    let mut budget = 1_000_000;
    eval(&program, &activation, &mut budget).map_err(|error| error.to_string())
}

#[track_caller]
fn holds(source: &str) {
    match run(source) {
        Ok(Value::Bool(true)) => {}
        other => panic!("{source}: {other:?}"),
    }
}

#[track_caller]
fn fails(source: &str, with: &str) {
    match run(source) {
        Err(message) if message.contains(with) => {}
        other => panic!("{source}: {other:?}, wanted {with}"),
    }
}

#[test]
fn literals_and_operators() {
    for source in [
        "1 + 2 * 3 == 7",
        "-9223372036854775808 < 0",
        "--1 == 1",
        "!!true",
        "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1",
        "0x1F == 31 && 0xAu == 10u",
        "1.5e3 == 1500.0 && .5 == 0.5",
        r#""a\n\x41\u00e9\101" == 'a' + "\n" + "AéA""#,
        r#"r'\n' == '\\n'"#,
        r#"b'\xff' == b'\377'"#,
        "'''a\nb''' == 'a\\nb'",
        "[1, 2] + [3] == [1, 2, 3]",
        "{'a': 1}['a'] == 1 && {'a': 1}.a == 1",
        "2 in [1, 2] && !('z' in {'a': 1})",
        "dyn(1) == 1u || false",
        "dyn(1) == dyn(1u) && dyn(1) == dyn(1.0)",
        "1 < 2u && 2.5 > 2 && 1u < 1.5",
        "b'a' < b'b' && 'a' < 'b' && false < true",
        "true ? true : (1 / 0 == 1)",
        "(1 / 0 == 1) || true",
        "!((1 / 0 == 1) && false)",
        "type(1) == int && type('') == string && type(type(1)) == type && type(null) == null_type",
        "int('42') == 42 && uint(3) == 3u && double('1.5') == 1.5 && string(1.5) == '1.5'",
        "string(1234567.0) == '1.234567e+06' && string(true) == 'true'",
        "bytes('é').size() == 2 && size('é') == 1",
        "x == 7 && .x == 7",
        "l[0] == 1 && l.size() == 3",
        "// comment\ntrue",
        "has({'a': 1}.a) && !has({'a': 1}.b)",
        "duration('1h30m') == duration('5400s') && string(duration('1.5s')) == '1.5s'",
        "timestamp('2009-02-13T23:31:30Z') == timestamp(1234567890)",
        "timestamp('2009-02-13T23:31:30Z').getHours('America/Phoenix') == 16",
        "timestamp('2009-02-13T23:31:30Z').getDayOfWeek() == 5",
        "timestamp('2009-02-13T23:31:30Z') + duration('1h') > timestamp('2009-02-14T00:31:29Z')",
        "duration('90s').getMinutes() == 1",
    ] {
        holds(source);
    }
}

#[test]
fn macros() {
    for source in [
        "l.all(e, e > 0) && l.exists(e, e == 2) && l.exists_one(e, e == 3)",
        "l.map(e, e * 2) == [2, 4, 6] && l.map(e, e > 1, e * 2) == [4, 6]",
        "l.filter(e, e % 2 == 1) == [1, 3]",
        "{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])",
        "l.all(i, v, i + 1 == v) && l.exists(i, v, i == v - 1)",
        "l.transformList(i, v, i * v) == [0, 2, 6] && l.transformList(i, v, i > 0, v) == [2, 3]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}",
        "[3, 1, 2].sortBy(e, -e) == [3, 2, 1]",
        "cel.bind(y, x + 1, y * y) == 64",
        "cel.bind(y, 1 / 0, true)",
        "cel.bind(y, [1].map(a, a), [2].map(b, y)) == [[1]]",
        "[1, 0].exists(e, 1 / e == 1)",
        "![1, 0].all(e, 1 / e == 2)",
        "[[1, 2], [3]].map(a, a.map(b, b + 1)) == [[2, 3], [4]]",
        "optional.of(1).optMap(v, v + 1).value() == 2",
        "!optional.none().optMap(v, v).hasValue()",
        "{'a': {'b': 1}}.?a.?b.orValue(3) == 1 && {'a': 1}.?c.orValue(3) == 3",
        "[1, 2][?5].hasValue() == false && l[?0].value() == 1",
        "[?optional.none(), ?optional.of(2)] == [2]",
        "{?'a': optional.none(), 'b': 1} == {'b': 1}",
    ] {
        holds(source);
    }
}

#[test]
fn evaluation_errors() {
    for (source, with) in [
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("0u - 1u == 0u", "unsigned integer overflow"),
        ("l[9] == 1", "index out of bounds: 9"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("m['a'] == 1", "no such attribute(s): m"),
        ("d + 1 == 2", "no such overload"),
        ("[1, 0].all(e, 1 / e == 1)", "division by zero"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("{1: 1, 1u: 2}.size() == 2", "expected type"),
    ] {
        fails(source, with);
    }
}

#[test]
fn compile_errors_point_at_the_place() {
    for (source, with) in [
        (
            "x.foo",
            "ERROR: <input>:1:2: type 'int' does not support field selection\n | x.foo\n | .^",
        ),
        (
            "y == 1",
            "ERROR: <input>:1:1: undeclared reference to 'y' (in container '')",
        ),
        (
            "x == 'a'",
            "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "x && true",
            "ERROR: <input>:1:1: expected type 'bool' but found 'int'",
        ),
        (
            "nope(1)",
            "ERROR: <input>:1:5: undeclared reference to 'nope' (in container '')",
        ),
        (
            "'a'.charAt('b')",
            "found no matching overload for 'charAt' applied to 'string.(string)'",
        ),
        (
            "[1, 'a']",
            "ERROR: <input>:1:5: expected type 'int' but found 'string'",
        ),
        (
            "x.all(e, true)",
            "expression of type 'int' cannot be range of a comprehension",
        ),
        ("l.all(e, e)", "expected type 'bool' but found 'int'"),
        ("1 +\n+ 2", "<input>:2:1: Syntax error: mismatched input '+'"),
        ("1 +", "<EOF>"),
        ("'abc", "token recognition error at: ''abc'"),
        ("a.namespace()", "undeclared reference to 'a'"),
        ("namespace", "reserved identifier: namespace"),
        ("has(x)", "invalid argument to has() macro"),
        ("'a'.matches('[')", "invalid matches argument"),
        ("duration('abc') == duration('1s')", "invalid duration argument"),
        ("99999999999999999999", "invalid int literal"),
        ("Foo{a: 1}", "undeclared reference to 'Foo'"),
    ] {
        fails(source, with);
    }
}

#[test]
fn hostile_input_is_refused_in_bounded_time() {
    for source in [
        "(".repeat(100_000),
        format!("{}1{}", "(".repeat(300), ")".repeat(300)),
        "[".repeat(5_000),
        "!".repeat(99_999),
        "-".repeat(99_999),
        "1+".repeat(40_000) + "1",
        "a.".repeat(40_000) + "a",
        "true?true:".repeat(9_000) + "true",
        "x[".repeat(5_000),
        "'".repeat(100_001),
        (0..300).fold("[1]".to_owned(), |list, _| format!("{list}.map(a,{{a:a}})")),
    ] {
        assert!(run(&source).is_err(), "{}", &source[..40]);
    }
    // Whatever nests must either be refused or run; neither may exhaust the stack of a thread.
    for (open, inner, close) in [
        ("{1: ", "1", "}"),
        ("[", "1", "]"),
        ("!(", "true", ")"),
        ("(true || true && 1 < 1 + 1 * (", "1", "))"),
        ("true ? (", "1", ") : 1"),
        ("[1].map(x, ", "x", ")"),
        ("[1].all(x, ", "true", ")"),
        ("[1].sortBy(x, ", "x", ")"),
        ("optional.of(", "1", ")"),
        ("optional.of(1).optMap(x, ", "x", ")"),
        ("size([", "1", "])"),
        ("[1][", "0", "]"),
        ("cel.bind(y, 1, ", "y", ")"),
        ("'%s'.format([", "1", "])"),
        ("{'a': 1}.transformMap(k, v, ", "v", ")"),
        ("dyn(", "1", ").a"),
    ] {
        for count in [60, 110, 240] {
            let _ = run(&format!("{}{inner}{}", open.repeat(count), close.repeat(count)));
        }
    }
    // Long chains that are not deep are fine.
    holds(&("true && ".repeat(9_000) + "true"));
    holds(&format!("{}true{}", "(".repeat(200), ")".repeat(200)));
    holds(&format!("{}1 == 201", "1+".repeat(200)));
}

#[test]
fn evaluation_stops_when_the_budget_is_spent() {
    let doubling = (0..60).fold("[[1]]".to_owned(), |list, _| format!("{list}.map(a, a + a)"));
    for source in [
        doubling.as_str(),
        "lists.range(1000000000000).size() > 0",
        "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))",
        "lists.range(900).map(a, lists.range(900)) == lists.range(900).map(a, lists.range(900))",
    ] {
        let program = env()
            .compile(source)
            .unwrap_or_else(|e| panic!("{source}: {}", e[0]));
        let mut budget = 1_000_000;
        let result = eval(&program, &Activation::new(), &mut budget);
        assert!(matches!(result, Err(Error::CostExceeded)), "{source}");
        assert_eq!(budget, 0);
    }
    // Not even `||` saves an expression that has used up its budget.
    let program = env().compile("lists.range(100).all(a, a >= 0) || true").unwrap();
    let mut budget = 50;
    assert!(matches!(
        eval(&program, &Activation::new(), &mut budget),
        Err(Error::CostExceeded)
    ));
}
