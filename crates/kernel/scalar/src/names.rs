//! The string formats of Kubernetes names and values, with upstream's explanations of what is wrong.
//!
//! Each check returns one text per fault. They are written over bytes: every write passes several of them.

/// Longest DNS-1123 subdomain.
pub const SUBDOMAIN_MAX: usize = 253;
/// Longest DNS label.
pub const LABEL_MAX: usize = 63;

const LABEL_FMT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FMT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED_FMT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_MSG: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn matches_label(s: &[u8]) -> bool {
    match s {
        [] => false,
        [only] => lower_alnum(*only),
        [first, middle @ .., last] => {
            lower_alnum(*first) && lower_alnum(*last) && middle.iter().all(|&b| lower_alnum(b) || b == b'-')
        }
    }
}

fn matches_subdomain(s: &str) -> bool {
    s.as_bytes().split(|&b| b == b'.').all(matches_label)
}

fn matches_qualified(s: &[u8]) -> bool {
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    match s {
        [] => false,
        [only] => only.is_ascii_alphanumeric(),
        [first, middle @ .., last] => {
            first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && middle.iter().all(inner)
        }
    }
}

/// The text for a string that is too long, by characters.
pub fn max_len(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn max_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// The text for a number out of range.
pub fn in_range(lowest: i64, highest: i64) -> String {
    format!("must be between {lowest} and {highest}, inclusive")
}

/// The text for a string that does not match a pattern.
pub fn regex_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{pattern}')");
    }
    let shown: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!(
        "{message} (e.g. {}regex used for validation is '{pattern}')",
        shown.join(" or ")
    )
}

/// A DNS-1123 label.
pub fn is_dns1123_label(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push(max_len(LABEL_MAX));
    }
    if !matches_label(value.as_bytes()) {
        faults.push(if matches_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL_FMT,
                &["my-name", "123-abc"],
            )
        });
    }
    faults
}

fn subdomain_fault() -> String {
    regex_error(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        SUBDOMAIN_FMT,
        &["example.com"],
    )
}

/// A DNS-1123 subdomain: what most objects are named by.
pub fn is_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        faults.push(max_len(SUBDOMAIN_MAX));
    }
    if !matches_subdomain(value) {
        faults.push(subdomain_fault());
    }
    faults
}

/// A DNS-1123 subdomain whose labels may hold underscores, for DNS search lists.
pub fn is_dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let label_ok = |label: &[u8]| {
        let label = label.strip_prefix(b"_").unwrap_or(label);
        match label {
            [] => false,
            [only] => lower_alnum(*only),
            [first, middle @ .., last] => {
                lower_alnum(*first)
                    && lower_alnum(*last)
                    && middle.iter().all(|&b| lower_alnum(b) || b == b'-' || b == b'_')
            }
        }
    };
    let mut faults = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        faults.push(max_len(SUBDOMAIN_MAX));
    }
    if !value.as_bytes().split(|&b| b == b'.').all(label_ok) {
        faults.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    faults
}

/// A DNS-1123 subdomain after `*.`.
pub fn is_wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        faults.push(max_len(SUBDOMAIN_MAX));
    }
    if !value.strip_prefix("*.").is_some_and(matches_subdomain) {
        faults.push(regex_error(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN_FMT}"),
            &["*.example.com"],
        ));
    }
    faults
}

/// A DNS-1035 label.
pub fn is_dns1035_label(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push(max_len(LABEL_MAX));
    }
    if !(matches_label(value.as_bytes()) && value.as_bytes()[0].is_ascii_lowercase()) {
        faults.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// A qualified name: label keys, finalizers, resource names.
pub fn is_qualified_name(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut parts = value.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > SUBDOMAIN_MAX {
                    faults.push(format!("prefix part {}", max_bytes(SUBDOMAIN_MAX)));
                }
                if !matches_subdomain(prefix) {
                    faults.push(format!("prefix part {}", subdomain_fault()));
                }
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                regex_error(QUALIFIED_MSG, QUALIFIED_FMT, &["MyName", "my.name", "123-abc"])
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        faults.push(format!("name part {}", max_bytes(LABEL_MAX)));
    }
    if !matches_qualified(name.as_bytes()) {
        faults.push(format!(
            "name part {}",
            regex_error(QUALIFIED_MSG, QUALIFIED_FMT, &["MyName", "my.name", "123-abc"])
        ));
    }
    faults
}

/// The value of a label.
pub fn is_label_value(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_MAX {
        faults.push(max_bytes(LABEL_MAX));
    }
    if !value.is_empty() && !matches_qualified(value.as_bytes()) {
        faults.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// A name that can stand as one segment of a URL path, or with `prefix` the beginning of one (`generateName`).
pub fn is_path_segment(name: &str, prefix: bool) -> Vec<String> {
    if prefix {
        is_path_segment_prefix(name)
    } else {
        is_path_segment_name(name)
    }
}

/// A name that can stand as one segment of a URL path.
pub fn is_path_segment_name(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    is_path_segment_prefix(name)
}

/// The beginning of a name that can stand as one segment of a URL path.
pub fn is_path_segment_prefix(name: &str) -> Vec<String> {
    ["/", "%"]
        .iter()
        .filter(|c| name.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

fn dot_faults(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        v if v.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

/// A key of a ConfigMap or Secret.
pub fn is_config_map_key(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        faults.push(max_len(SUBDOMAIN_MAX));
    }
    if value.is_empty()
        || !value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        faults.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    faults.extend(dot_faults(value));
    faults
}

/// The name of an environment variable.
pub fn is_env_var_name(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.is_empty() {
        faults.push("environment variable name must be non-empty".to_owned());
    }
    if !value.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=') {
        faults.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    faults
}

/// A C identifier.
pub fn is_c_identifier(value: &str) -> Vec<String> {
    let ok = value
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if ok {
        return Vec::new();
    }
    vec![regex_error(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// The name of an HTTP header.
pub fn is_http_header_name(value: &str) -> Vec<String> {
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    vec![regex_error(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// A port number.
pub fn is_valid_port_num(port: i64) -> Vec<String> {
    if (1..=65535).contains(&port) {
        Vec::new()
    } else {
        vec![in_range(1, 65535)]
    }
}

/// The name of a port, as in RFC 6335 but in lower case.
pub fn is_valid_port_name(port: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if port.len() > 15 {
        faults.push(max_len(15));
    }
    if port.is_empty() || !port.bytes().all(|b| lower_alnum(b) || b == b'-') {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !port.bytes().any(|b| b.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if port.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if port.starts_with('-') || port.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

/// A percentage such as `25%`.
pub fn is_valid_percent(value: &str) -> Vec<String> {
    let ok = value
        .strip_suffix('%')
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if ok {
        return Vec::new();
    }
    vec![regex_error(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// A user or group id.
pub fn is_valid_id(id: i64) -> Vec<String> {
    let highest = i64::from(i32::MAX);
    if (0..=highest).contains(&id) {
        Vec::new()
    } else {
        vec![in_range(0, highest)]
    }
}

#[cfg(test)]
mod tests;
