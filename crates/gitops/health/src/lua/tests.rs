//! What scripts see, what they may return, and that they end.

use serde_json::json;

use super::*;

fn host(open_libs: bool) -> Host {
    Host {
        now: jiff::Timestamp::from_second(1_700_000_000).unwrap(),
        open_libs,
        limits: Limits {
            instructions: 200_000,
            ..Limits::default()
        },
        stopwatch: None,
    }
}

fn run(script: &str) -> Result<Health, ScriptError> {
    host(true).health(
        script,
        &json!({"kind": "Thing", "spec": {"n": 3, "list": [1, null, 2]}, "gone": null}),
    )
}

/// A script that says `text` as its message.
fn says(expression: &str) -> String {
    match run(&format!(
        "return {{status='Healthy', message=tostring({expression})}}"
    )) {
        Ok(health) => health.message,
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn what_scripts_return_becomes_a_health() {
    let cases = [
        (
            "a table",
            "return {status='Degraded', message='no'}",
            Ok(Health::new(Status::Degraded, "no")),
        ),
        (
            "no message",
            "return {status='Healthy'}",
            Ok(Health::plain(Status::Healthy)),
        ),
        ("nothing", "local x = 1", Ok(Health::default())),
        ("an empty table", "return {}", Ok(Health::default())),
        ("a list", "return {'Healthy'}", Ok(Health::default())),
        (
            "a word of their own",
            "return {status='Fine', message='x'}",
            Ok(Health::new(
                Status::Unknown,
                "Lua returned an invalid health status",
            )),
        ),
        (
            "no status",
            "return {message='x'}",
            Ok(Health::new(
                Status::Unknown,
                "Lua returned an invalid health status",
            )),
        ),
        ("a number", "return 1", Err(ScriptError::WrongType("number"))),
        (
            "a text",
            "return 'Healthy'",
            Err(ScriptError::WrongType("string")),
        ),
        (
            "an error",
            "error('boom')",
            Err(ScriptError::Failed("health.lua:1: boom".to_owned())),
        ),
    ];
    for (reason, script, expected) in cases {
        assert_eq!(run(script), expected, "{reason}");
    }
    let Err(ScriptError::Failed(message)) = run("return {status=") else {
        panic!("a script that is no Lua must fail");
    };
    assert!(message.contains("unexpected symbol"), "{message}");
}

#[test]
fn objects_look_as_in_argo_cd() {
    let cases = [
        ("obj.spec.n", "3"),
        ("obj.spec.n / 2", "1.5"),
        ("obj.spec.n + 1", "4"),
        ("#obj.spec.list", "2"),
        ("obj.gone == nil", "true"),
        ("table.getn(obj.spec.list)", "2"),
        ("require('os').time()", "1700000000"),
        (
            "os.time({year=2023, month=11, day=14, hour=22, min=13, sec=20})",
            "1700000000",
        ),
        ("os.time({year=2023, month=12, day=32, hour=0})", "1704067200"),
        ("os.date('!%Y-%m-%dT%H:%M:%SZ %q')", "2023-11-14T22:13:20Z %q"),
        ("os.date('*t').year", "2023"),
        ("unpack({1,2})", "1"),
        ("loadstring('return 1+1')()", "2"),
    ];
    for (expression, expected) in cases {
        assert_eq!(says(expression), expected, "{expression}");
    }
}

#[test]
fn patterns_are_lua_s() {
    let cases = [
        ("('hello world'):find('wor')", "7"),
        ("select(2, ('hello world'):find('o w'))", "7"),
        ("('a.b'):find('.', 1, true)", "2"),
        ("('2023-11-14'):match('(%d+)-(%d+)')", "2023"),
        ("select(2, ('2023-11-14'):match('(%d+)-(%d+)'))", "11"),
        ("('key = value'):match('^(%w+)%s*=%s*(%w+)$')", "key"),
        ("('x'):match('y')", "nil"),
        ("('hello'):gsub('l', 'L')", "heLLo"),
        ("select(2, ('hello'):gsub('l', 'L'))", "2"),
        ("('hello'):gsub('l', 'L', 1)", "heLlo"),
        ("('hello'):gsub('(h)(e)', '%2%1')", "ehllo"),
        ("('abc'):gsub('%w', {a='1', b=true and '2'})", "12c"),
        ("('abc'):gsub('', '-')", "-a-b-c-"),
        ("('f(a(b)c)d'):match('%b()')", "(a(b)c)"),
        ("('THE (quick) fox'):find('%f[%a]%a+%f[%A]')", "1"),
        ("('aaa'):match('a-b')", "nil"),
        ("('[x]'):match('[%]]')", "]"),
        ("('abab'):match('(ab)%1')", "ab"),
        ("('abc'):match('()b()')", "2"),
        ("('abc'):find('b', -2)", "2"),
        ("('x'):rep(3)", "xxx"),
        ("('a'):match('[')", "error: malformed pattern (missing ']')"),
    ];
    for (expression, expected) in cases {
        let got = says(expression);
        let got = got.split("\nstack").next().unwrap();
        assert!(
            got == expected || got.ends_with(expected) && expected.starts_with("error"),
            "{expression}: {got}"
        );
    }
    let script = "local t = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t+1] = k .. v end
        return {status='Healthy', message=table.concat(t, ' ')}";
    assert_eq!(run(script).unwrap().message, "a1 b2");
}

#[test]
fn scripts_reach_nothing_outside() {
    for name in [
        "io",
        "debug",
        "package",
        "dofile",
        "loadfile",
        "os.execute",
        "os.exit",
        "os.getenv",
        "os.remove",
        "string.dump",
        "collectgarbage",
    ] {
        assert_eq!(says(name), "nil", "{name}");
    }
    // Byte code could do anything.
    assert_eq!(says("loadstring('\\27Lua')"), "nil");
    for module in ["io", "debug", "ffi", "_G"] {
        assert!(
            says(&format!("require('{module}')")).contains("not found"),
            "{module}"
        );
    }
    let closed = host(false).health("return {status='Healthy', message=tostring(string)}", &json!({}));
    assert_eq!(
        closed.unwrap().message,
        "nil",
        "strings are for open libraries only"
    );
}

#[test]
fn scripts_end() {
    let cases = [
        ("a loop", "while true do end", "its instructions"),
        (
            "a loop that catches",
            "while true do pcall(function() while true do end end) end",
            "its instructions",
        ),
        (
            "a loop that catches with a handler",
            "while true do xpcall(function() while true do end end, function() end) end",
            "its instructions",
        ),
        (
            "a loop in a coroutine",
            "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
            "its instructions",
        ),
        (
            "a loop in a wrapped coroutine",
            "coroutine.wrap(function() while true do end end)()",
            "its instructions",
        ),
        (
            "memory",
            "local t = {} local s = 'x' while true do s = s .. s end",
            "its memory",
        ),
        (
            "a pattern",
            "return ('a'):rep(60):find(('a*'):rep(30) .. 'b')",
            "its instructions",
        ),
        (
            "a lazy pattern",
            "return pcall(string.gsub, ('a'):rep(60), ('a-'):rep(30) .. 'b', 'x')",
            "its instructions",
        ),
    ];
    for (reason, script, limit) in cases {
        assert_eq!(run(script), Err(ScriptError::OverLimit(limit)), "{reason}");
    }
    assert!(
        run("local function f() return f() + 1 end f()").is_err(),
        "endless recursion"
    );
    assert!(matches!(
        run("return (''):rep(2^40)"),
        Err(ScriptError::WrongType("string"))
    ));
    assert!(matches!(
        run("return ('x'):rep(2^40)"),
        Err(ScriptError::Failed(_))
    ));
}

#[test]
fn a_clock_stops_slow_scripts() {
    let ticks = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let clock: Stopwatch =
        Arc::new(move || Duration::from_millis(ticks.fetch_add(100, std::sync::atomic::Ordering::Relaxed)));
    let host = Host {
        stopwatch: Some(clock),
        ..host(true)
    };
    let result = host.health("while true do end", &json!({}));
    assert_eq!(result, Err(ScriptError::OverLimit("its time")));
}
