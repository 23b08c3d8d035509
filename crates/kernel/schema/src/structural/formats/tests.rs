//! What each format accepts and refuses.

use super::{Format, Type};

fn check(name: &str, good: &[&str], bad: &[&str]) {
    let format = Format::parse(name, Type::String);
    assert_ne!(format, Format::None, "{name}");
    assert_eq!(format.name(), name);
    for text in good {
        assert!(format.accepts(text), "{name} should accept {text:?}");
    }
    for text in bad {
        assert!(!format.accepts(text), "{name} should refuse {text:?}");
    }
}

#[test]
fn dates_and_durations() {
    check(
        "date",
        &["2015-02-28", "2016-02-29", "0000-01-01"],
        &[
            "2015-02-29",
            "2015-13-01",
            "2015-1-1",
            "2015-01-01T00:00:00Z",
            "",
            "2015-00-01",
            "2015-01-00",
        ],
    );
    check(
        "date-time",
        &[
            "2014-12-15T19:30:20.000Z",
            "2011-08-18T19:03:37.000000000+01:00",
            "2014-12-15t19:30:20z",
            "2014-12-15T19:30:20-08:00",
            "2014-12-15T19:30:20,5Z",
        ],
        &[
            "2014-12-15",
            "2014-12-15T08:24:00",
            "2014-12-15T25:30:20Z",
            "2014-12-15T23:60:20Z",
            "2014-13-15T19:30:20Z",
            "yada",
            "",
            "2014-12-15T19:30:20.Z",
        ],
    );
    assert_eq!(Format::parse("datetime", Type::String).name(), "datetime");
    check(
        "duration",
        &[
            "1h30m",
            "-1.5h",
            "0",
            "1.s",
            "22 ns",
            "3 days",
            "1 week and 2 hrs",
            "10us",
            "5 minutes",
            "1\u{b5}s",
            "1w",
        ],
        &[
            "",
            "1",
            "yada",
            "1y",
            "h",
            "-",
            "1 yard",
            "99999999999999999999 days",
            ".",
        ],
    );
}

#[test]
fn addresses() {
    check(
        "ipv4",
        &["192.168.254.1", "010.001.000.1", "::ffff:1.2.3.4"],
        &[
            "198.168.254.2.2",
            "256.1.1.1",
            "::1",
            "1.2.3",
            "",
            "1..2.3",
            "a.b.c.d",
        ],
    );
    check(
        "ipv6",
        &["::1", "fe80::1", "::ffff:1.2.3.4"],
        &["127.0.0.1", "fe80::1%eth0", "", ":::"],
    );
    check(
        "cidr",
        &["192.168.254.0/24", "010.0.0.0/8", "::1/128", "2001:db8::/32"],
        &[
            "192.168.254.0",
            "1.2.3.4/33",
            "::1/129",
            "1.2.3.4/",
            "1.2.3.4/-1",
            "a/8",
        ],
    );
    check(
        "mac",
        &[
            "01:02:03:04:05:06",
            "01-02-03-04-05-06",
            "0102.0304.0506",
            "01:02:03:04:05:06:07:08",
        ],
        &[
            "01:02:03:04:05",
            "01:02:03-04:05:06",
            "0g:02:03:04:05:06",
            "010203040506",
            "",
        ],
    );
    check(
        "hostname",
        &[
            "somewhere.com",
            "localhost",
            "a-b",
            "1host.example.com",
            "www.example.onion",
            "\u{2665}.com",
            "a",
        ],
        &[
            "ab-c",
            "-a.com",
            "a-.com",
            "a..com",
            "a.c0m",
            "somewhere.com!",
            "",
            "a_b",
            &"a".repeat(64),
        ],
    );
    check(
        "uri",
        &[
            "http://foo.bar/#com",
            "http://foobar.\u{4e2d}\u{6587}\u{7f51}/",
            "http://user:pass@www.foobar.com/",
            "http://duckduckgo.com/?q=%2F",
            "http://localhost:3000/",
            "xyz://foobar.com",
            "mailto:someone@example.com",
            "/abs/test/dir",
            "http://[::1]:80/",
            "http://foobar.com/t$-_.+!*\\'(),",
            "*",
        ],
        &[
            "",
            "foobar.com",
            "invalid.",
            ".com",
            "./rel/test/dir",
            "http://a b/",
            "http://[::1/",
            "http://a:b/",
            "/%zz",
            ":a",
            "http://a%41/",
            "/a\u{7f}",
        ],
    );
    check(
        "email",
        &[
            "somebody@somewhere.com",
            "Name <a@b.c>",
            "\"quoted, name\" <a@b.c>",
            "\"a b\"@c.d",
            "a+b@c",
            "a@b (comment)",
            "a@[127.0.0.1]",
        ],
        &[
            "", "nobody", "a@", "@b", "a@b@c", "a..b@c", ".a@b", "<a@b", "a@b>", "a b@c", "a@b c",
        ],
    );
}

#[test]
fn identifiers() {
    check(
        "uuid",
        &[
            "a8098c1a-f86e-11da-bd1a-00112444be1e",
            "A8098C1AF86E11DABD1A00112444BE1E",
        ],
        &[
            "",
            "a8098c1a-f86e-11da-bd1a-00112444be1",
            "g8098c1a-f86e-11da-bd1a-00112444be1e",
            "a-8098c1af86e11dabd1a00112444be1e",
        ],
    );
    check(
        "uuid3",
        &["bcd02e22-68f0-3046-a512-327cca9def8f"],
        &["bcd02e22-68f0-4046-a512-327cca9def8f"],
    );
    check(
        "uuid4",
        &["025b0d74-00a2-4048-bf57-227c5111bb34"],
        &[
            "025b0d74-00a2-4048-7f57-227c5111bb34",
            "025b0d74-00a2-3048-bf57-227c5111bb34",
        ],
    );
    check(
        "uuid5",
        &["886313e1-3b8a-5372-9b90-0c9aee199e5d"],
        &["886313e1-3b8a-4372-9b90-0c9aee199e5d"],
    );
    check(
        "isbn",
        &["0321751043", "978-0321751041"],
        &["836217463", "foo", ""],
    );
    check(
        "isbn10",
        &["0321751043", "3 401 01319 X", "1-61729-085-8"],
        &["0321751042", "9780321751041"],
    );
    check("isbn13", &["978 0321751041"], &["978 0321751042", "0321751043"]);
    check(
        "creditcard",
        &[
            "4220855426222389",
            "4220 8554 2622 2389",
            "4220-8554-2622-2389",
            "5139288802098206",
            "374953669708156",
            "6011464355444102",
            "3548209662790989",
        ],
        &[
            "",
            "credit card",
            "4220855426213389",
            "30190239451016",
            "6521674451993089",
            "2204151414444676",
            "30",
        ],
    );
    check(
        "ssn",
        &["111-11-1111", "111 11 1111"],
        &["999999999", "111-11-111", "a11-11-1111", ""],
    );
    check(
        "hexcolor",
        &["#FFFFFF", "CCccCC", "fff", "#f00"],
        &["", "#ff", "fff0", "#ff12FG"],
    );
    check(
        "rgbcolor",
        &["rgb(0,31,255)", "rgb(0,  31, 255)"],
        &[
            "",
            "rgb(1,349,275)",
            "rgb(01,31,255)",
            "rgb(0.6,31,255)",
            "rgba(0,31,255)",
            "rgb(1,2)",
        ],
    );
    check(
        "byte",
        &["ZWxpemFiZXRocG9zZXk=", "aGk=", "YQ==", "abcd"],
        &["ZWxpemFiZXRocG9zZXk", "", "a===", "ab-_"],
    );
    check(
        "bsonobjectid",
        &["507f1f77bcf86cd799439011"],
        &["507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g"],
    );
    check("password", &["", "super secret!"], &[]);
    check("k8s-short-name", &["a", "a-b"], &["A", "a.b", "", "-a"]);
    check("k8s-long-name", &["a.b", "a"], &["A.b", "a..b", ""]);
}

#[test]
fn formats_depend_on_the_type() {
    assert_eq!(Format::parse("int32", Type::Integer), Format::Int32);
    assert_eq!(Format::parse("int32", Type::String), Format::None);
    assert_eq!(Format::parse("date", Type::Integer), Format::None);
    assert_eq!(Format::parse("double", Type::Number), Format::Double);
    assert_eq!(Format::parse("date", Type::Any), Format::Date);
    assert_eq!(Format::parse("quantity", Type::String), Format::None);
    assert_eq!(Format::parse("date", Type::Object), Format::None);
}
