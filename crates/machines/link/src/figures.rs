//! Figures of machines of several nodes, put together as one text that Prometheus reads.
//!
//! Each family may stand there once, with what it is, and no series twice. What comes from another host is looked at: it tells of machines
//! there, under names of machines' figures, and of nothing else.

use std::collections::{BTreeMap, HashSet};

/// Names of machines' figures begin so.
const PREFIX: &str = "kubevirt_";

/// Whether a node told anything.
const ANSWERED: &str = "fairway_node_figures_told";

/// A text with figures, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Page<'p> {
    /// The node that it came from; nothing if it is this process's own.
    pub node: Option<&'p str>,
    /// As Prometheus reads it.
    pub text: &'p str,
}

#[derive(Default)]
struct Family<'p> {
    /// Its `HELP` and `TYPE`, as the first page has them.
    heads: Vec<&'p str>,
    lines: Vec<&'p str>,
}

/// One text of several: families together, in the order of their names. Of a series that comes twice the first one counts.
pub fn merge(pages: &[Page<'_>]) -> String {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    let mut series = HashSet::new();
    for page in pages {
        for line in page.text.lines() {
            match line.strip_prefix("# ") {
                Some(head) => {
                    let mut words = head.split(' ');
                    let (Some(what @ ("HELP" | "TYPE")), Some(name)) = (words.next(), words.next()) else {
                        continue;
                    };
                    let heads = &mut families.entry(name).or_default().heads;
                    let is_told = |it: &&str| it[2..].starts_with(what);
                    if !heads.iter().any(is_told) {
                        heads.push(line);
                    }
                }
                None => {
                    let Some((name, labels)) = parse(line) else {
                        continue;
                    };
                    if page.node.is_some_and(|node| !may_tell(node, name, &labels)) {
                        continue;
                    }
                    let whole = line.rsplit_once(' ').map_or(line, |(whole, _)| whole);
                    if series.insert(whole) {
                        families.entry(name).or_default().lines.push(line);
                    }
                }
            }
        }
    }
    let mut text = String::new();
    for family in families.values().filter(|it| !it.lines.is_empty()) {
        for line in family.heads.iter().chain(&family.lines) {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// What whoever asks for figures reads: those of instances, those that each node told of its machines, and which nodes did not.
pub fn together(instances: &str, told: &[(Option<String>, Result<String, String>)]) -> String {
    let mut pages = vec![Page {
        node: None,
        text: instances,
    }];
    let mut answered = String::new();
    for (node, answer) in told {
        if let Ok(text) = answer {
            pages.push(Page {
                node: node.as_deref(),
                text,
            });
        }
        if let Some(node) = node {
            answered += &format!("{ANSWERED}{{node=\"{node}\"}} {}\n", u8::from(answer.is_ok()));
        }
    }
    let mut text = merge(&pages);
    if !answered.is_empty() {
        text += &format!(
            "# HELP {ANSWERED} Whether a node that is connected told figures of its machines in time.\n"
        );
        text += &format!("# TYPE {ANSWERED} gauge\n{answered}");
    }
    text
}

/// Whether a node may say that: figures of machines, with its own name.
fn may_tell(node: &str, name: &str, labels: &[(&str, &str)]) -> bool {
    let mut nodes = labels.iter().filter(|(label, _)| *label == "node");
    let is_own = nodes.next().is_some_and(|(_, value)| *value == node);
    name.starts_with(PREFIX) && is_own && nodes.next().is_none()
}

/// Name and labels of a line such as `name{a="b"} 1`; nothing if it is none. Values are as they are written, escapes and all.
fn parse(line: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let end = line.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_' || it == ':'))?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, value) = rest.trim_start_matches(',').split_once("=\"")?;
            let end = closing(value)?;
            labels.push((label, &value[..end]));
            rest = &value[end + 1..];
        }
        rest = &rest[1..];
    }
    let value: Option<f64> = rest.strip_prefix(' ').and_then(|it| it.parse().ok());
    (!name.is_empty() && value.is_some()).then_some((name, labels))
}

/// Where the quote is that ends a value.
fn closing(value: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => return Some(at),
            b'\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "# HELP kubevirt_a First.\n# TYPE kubevirt_a gauge\nkubevirt_a{node=\"here\",name=\"x\"} 1\n\
                        # HELP kubevirt_b Second.\n# TYPE kubevirt_b counter\nkubevirt_b 2.5\n";

    #[test]
    fn families_of_several_nodes_stand_together() {
        let far =
            "# HELP kubevirt_a First.\n# TYPE kubevirt_a gauge\nkubevirt_a{node=\"far\",name=\"y\"} 3\n";
        let pages = [
            Page {
                node: None,
                text: HERE,
            },
            Page {
                node: Some("far"),
                text: far,
            },
        ];
        assert_eq!(
            merge(&pages),
            "# HELP kubevirt_a First.\n# TYPE kubevirt_a gauge\nkubevirt_a{node=\"here\",name=\"x\"} 1\nkubevirt_a{node=\"far\",name=\"y\"} 3\n\
             # HELP kubevirt_b Second.\n# TYPE kubevirt_b counter\nkubevirt_b 2.5\n"
        );
        assert_eq!(merge(&[]), "");
    }

    #[test]
    fn a_node_tells_of_its_own_machines_alone() {
        let cases = [
            ("kubevirt_a{node=\"far\",name=\"y\"} 3", true, "its own"),
            (
                "kubevirt_a{namespace=\"n\",name=\"y\"} 3",
                false,
                "no node is named",
            ),
            ("kubevirt_a{node=\"far\",node=\"here\"} 3", false, "two are named"),
            ("kubevirt_a{name=\"q\\\"}\\\\\",node=\"far\"} 3", true, "escapes"),
            ("kubevirt_a{node=\"here\",name=\"y\"} 3", false, "another node's"),
            (
                "kubevirt_a{name=\"\\\",node=\\\"far\",node=\"here\"} 3",
                false,
                "another node's, hidden",
            ),
            (
                "apiserver_request_total{node=\"far\"} 3",
                false,
                "not of machines",
            ),
            ("kubevirt_a{node=\"far\"", false, "broken off"),
            ("kubevirt_a{node=\"far\"} many", false, "no number"),
            ("kubevirt_a{node=\"far\"}3", false, "no space"),
            ("{node=\"far\"} 3", false, "no name"),
            ("# HELP kubevirt_a Nothing below.", false, "a head alone"),
            ("", false, "nothing"),
        ];
        for (text, is_taken, reason) in cases {
            let page = Page {
                node: Some("far"),
                text,
            };
            let expected = if is_taken {
                format!("{text}\n")
            } else {
                String::new()
            };
            assert_eq!(merge(&[page]), expected, "{reason}");
        }
    }

    #[test]
    fn no_series_comes_twice() {
        let pages = [
            Page {
                node: None,
                text: "kubevirt_a{node=\"far\",name=\"x\"} 1\n",
            },
            Page {
                node: Some("far"),
                text: "kubevirt_a{node=\"far\",name=\"x\"} 2\nkubevirt_a{node=\"far\",name=\"y\"} 2\n",
            },
        ];
        assert_eq!(
            merge(&pages),
            "kubevirt_a{node=\"far\",name=\"x\"} 1\nkubevirt_a{node=\"far\",name=\"y\"} 2\n"
        );
    }

    #[test]
    fn nodes_that_did_not_tell_are_named() {
        let told = [
            (None, Ok("kubevirt_a{node=\"here\"} 1\n".to_owned())),
            (
                Some("far".to_owned()),
                Ok("kubevirt_a{node=\"far\"} 2\n".to_owned()),
            ),
            (Some("ill".to_owned()), Err("no answer within 5 s".to_owned())),
        ];
        assert_eq!(
            together("kubevirt_info 3\n", &told),
            "kubevirt_a{node=\"here\"} 1\nkubevirt_a{node=\"far\"} 2\nkubevirt_info 3\n\
             # HELP fairway_node_figures_told Whether a node that is connected told figures of its machines in time.\n\
             # TYPE fairway_node_figures_told gauge\n\
             fairway_node_figures_told{node=\"far\"} 1\nfairway_node_figures_told{node=\"ill\"} 0\n"
        );
        assert_eq!(together("", &[]), "");
    }
}
