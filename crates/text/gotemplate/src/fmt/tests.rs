//! Formats as Go prints them. The expected texts were printed by Go.

use super::{sprint, sprintf};
use crate::value::{Entries, Value};

fn check(format: &str, args: &[Value], expected: &str) {
    let printed = sprintf(format.as_bytes(), args).unwrap();
    assert_eq!(String::from_utf8_lossy(&printed), expected, "{format}");
}

#[test]
fn verbs_print_as_go_does() {
    let float = Value::Float;
    let int = Value::int;
    let text = |text: &str| Value::from(text);
    let cases: &[(&str, Vec<Value>, &str)] = &[
        ("%d", vec![float(1.0)], "%!d(float64=1)"),
        (
            "%v %v %v",
            vec![float(1e6), float(100000.0), float(1e-5)],
            "1e+06 100000 1e-05",
        ),
        (
            "%.2f|%6.1f|%-8.3e|",
            vec![float(2.345), float(2.25), float(12345.678)],
            "2.35|   2.2|1.235e+04|",
        ),
        (
            "%g %G %.3g",
            vec![float(123456789.0), float(1e-10), float(1234.5)],
            "1.23456789e+08 1E-10 1.23e+03",
        ),
        (
            "%5d|%-5d|%05d|%+d|% d",
            vec![int(42), int(42), int(-42), int(42), int(42)],
            "   42|42   |-0042|+42| 42",
        ),
        (
            "%x %X %#x %o %#o %O %b",
            vec![int(255), int(255), int(255), int(8), int(8), int(8), int(5)],
            "ff FF 0xff 10 010 0o10 101",
        ),
        (
            "%c%c %U %#U %q",
            vec![int(65), int(0x1F600), int(0x41), int(0x41), int(0x41)],
            "A😀 U+0041 U+0041 'A' 'A'",
        ),
        (
            "%s|%10s|%-10s|%.2s|%q|%x",
            vec![
                text("go"),
                text("go"),
                text("go"),
                text("gopher"),
                text("a\"b\n"),
                text("hi"),
            ],
            "go|        go|go        |go|\"a\\\"b\\n\"|6869",
        ),
        ("%t %v", vec![Value::Bool(true), Value::Bool(false)], "true false"),
        ("%s", vec![int(1)], "%!s(int=1)"),
        ("%d %s", vec![int(1)], "1 %!s(MISSING)"),
        ("%d", vec![int(1), text("x")], "1%!(EXTRA string=x)"),
        ("%[2]d %[1]d", vec![int(1), int(2)], "2 1"),
        ("%[3]d", vec![int(1)], "%!d(BADINDEX)"),
        (
            "%*d|%-*d|%.*f",
            vec![int(4), int(7), int(3), int(7), int(1), float(1.25)],
            "   7|7  |1.2",
        ),
        ("a%", vec![], "a%!(NOVERB)"),
        ("%v %d", vec![Value::Nil, Value::Nil], "<nil> %!d(<nil>)"),
        (
            "%T %T %T",
            vec![text(""), float(0.0), Value::list(vec![])],
            "string float64 []interface {}",
        ),
        (
            "%v %v",
            vec![
                Value::list(vec![int(1), text("a"), Value::Nil]),
                Value::strings(["x", "y"]),
            ],
            "[1 a <nil>] [x y]",
        ),
        ("%6.2f%%", vec![float(99.5)], " 99.50%"),
        ("%03d|%3c|%-3c|", vec![int(7), int(65), int(65)], "007|  A|A  |"),
        ("%e", vec![float(0.0)], "0.000000e+00"),
        (
            "%v %s",
            vec![
                Value::Bytes(b"ab".as_slice().into()),
                Value::Bytes(b"ab".as_slice().into()),
            ],
            "[97 98] ab",
        ),
        ("%08.3f|%+.1f", vec![float(-3.25159), float(2.0)], "-003.252|+2.0"),
        ("%q", vec![Value::strings(["a", "b"])], "[\"a\" \"b\"]"),
        (
            "%#v %#v",
            vec![text("a"), Value::list(vec![int(1)])],
            "\"a\" []interface {}{1}",
        ),
    ];
    for (format, args, expected) in cases {
        check(format, args, expected);
    }
}

#[test]
fn maps_print_their_keys_in_order() {
    let mut entries = Entries::new();
    entries.insert(b"b".as_slice().into(), Value::Float(1.5));
    entries.insert(b"a".as_slice().into(), Value::Nil);
    check("%v", &[Value::map(entries)], "map[a:<nil> b:1.5]");
}

#[test]
fn print_puts_spaces_between_what_is_not_text() {
    let printed = sprint(&[
        Value::int(1),
        Value::int(2),
        "a".into(),
        "b".into(),
        Value::int(3),
    ])
    .unwrap();
    assert_eq!(printed, b"1 2ab3");
}
