//! Formats by example; the texts are those of Kubernetes.

use super::{
    is_config_map_key, is_dns1035_label, is_dns1123_label, is_dns1123_subdomain, is_env_var_name,
    is_label_value, is_path_segment_name, is_qualified_name, is_valid_percent, is_valid_port_name,
    is_wildcard_dns1123_subdomain,
};

#[test]
fn valid_and_invalid() {
    type Check = fn(&str) -> Vec<String>;
    let long63 = "a".repeat(63);
    let long64 = "a".repeat(64);
    let long253 = "a".repeat(253);
    let long254 = "a".repeat(254);
    let prefixed = format!("{long253}/a");
    let cases: &[(&str, Check, &[&str], &[&str])] = &[
        (
            "label",
            is_dns1123_label,
            &["a", "0", "a-b", "1-1", &long63],
            &["", "-a", "a-", "A", "a.b", "a_b", "ä", &long64],
        ),
        (
            "subdomain",
            is_dns1123_subdomain,
            &["a", "a.b", "0.1-2.c", &long253],
            &["", ".", "a.", ".a", "a..b", "a.-b", "A.b", "a b", &long254],
        ),
        (
            "dns1035",
            is_dns1035_label,
            &["a", "a1", "a-1"],
            &["", "1a", "a-", "A", "a.b"],
        ),
        (
            "qualified name",
            is_qualified_name,
            &["a", "A", "a.b_c-d", "example.com/Name", "0", &prefixed],
            &["", "/a", "a/", "a/b/c", "-a", "a-", "Ex/a", "a b", &long64],
        ),
        (
            "label value",
            is_label_value,
            &["", "a", "A_b.c-1", &long63],
            &["-a", "a b", "a/b", &long64],
        ),
        (
            "config key",
            is_config_map_key,
            &["a", ".a", "A_b-c.d", "1"],
            &["", ".", "..", "..a", "a/b", "a b", &long254],
        ),
        (
            "path segment",
            is_path_segment_name,
            &["a", "system:node", "A b"],
            &[".", "..", "a/b", "a%b"],
        ),
        (
            "port name",
            is_valid_port_name,
            &["a", "http", "web-1", "1a"],
            &["", "1", "-a", "a-", "a--b", "HTTP", "abcdefghijklmnop"],
        ),
        (
            "env",
            is_env_var_name,
            &["A", "a.b-c", "1", "a b"],
            &["", "a=b", "ü", "a\n"],
        ),
        (
            "percent",
            is_valid_percent,
            &["0%", "100%"],
            &["", "%", "1", "1.5%", "-1%"],
        ),
        (
            "wildcard",
            is_wildcard_dns1123_subdomain,
            &["*.a.b"],
            &["*", "*.", "a.b", "*.*.a", "*a.b"],
        ),
    ];
    for (what, check, good, bad) in cases {
        for value in *good {
            assert_eq!(check(value), Vec::<String>::new(), "{what}: {value}");
        }
        for value in *bad {
            assert!(!check(value).is_empty(), "{what}: {value} should be refused");
        }
    }
}

#[test]
fn texts() {
    assert_eq!(
        is_dns1123_subdomain("Bad_Name"),
        [
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]
    );
    assert_eq!(
        is_dns1123_label("Bad"),
        [
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        ]
    );
    assert_eq!(is_dns1123_label("a.b"), ["must not contain dots"]);
    assert_eq!(
        is_dns1035_label("1a"),
        [
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        ]
    );
    assert_eq!(is_path_segment_name(".."), ["may not be '..'"]);
    assert_eq!(
        is_path_segment_name("a/b%c"),
        ["may not contain '/'", "may not contain '%'"]
    );
    assert_eq!(is_label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
    assert_eq!(
        is_dns1123_label(&"a".repeat(64)),
        ["must be no more than 63 characters"]
    );
    assert!(is_label_value("a b")[0].starts_with("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9]"));
    assert_eq!(is_qualified_name("/a"), ["prefix part must be non-empty"]);
    assert!(
        is_qualified_name("a/b/c")[0]
            .ends_with("with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")
    );
}
