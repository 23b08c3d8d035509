//! Figures as text, in the form that Prometheus reads: each family once, with what it is, and its figures below.

use std::fmt::{self, Write as _};

/// What a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
}

/// The figures of one name.
#[derive(Debug)]
pub(super) struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    lines: String,
}

impl Family {
    /// Adds a figure. Labels without a value are left out.
    pub(super) fn put(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.lines += self.name;
        let mut opened = false;
        for (name, text) in labels.iter().filter(|it| !it.1.is_empty()) {
            self.lines.push(if opened { ',' } else { '{' });
            opened = true;
            let _ = write!(self.lines, "{name}=\"{}\"", escaped(text));
        }
        if opened {
            self.lines.push('}');
        }
        let _ = writeln!(self.lines, " {value}");
    }
}

/// All figures, in the order in which their names came.
#[derive(Debug, Default)]
pub(super) struct Page(Vec<Family>);

impl Page {
    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, Kind::Gauge, help)
    }

    pub(super) fn counter(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, Kind::Counter, help)
    }

    fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) -> &mut Family {
        let at = self
            .0
            .iter()
            .position(|it| it.name == name)
            .unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push(Family {
                name,
                kind,
                help,
                lines: String::new(),
            });
        }
        &mut self.0[at]
    }

    pub(super) fn write(&self) -> String {
        let mut text = String::new();
        for family in &self.0 {
            let kind = match family.kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
            };
            let _ = writeln!(text, "# HELP {} {}", family.name, family.help);
            let _ = writeln!(text, "# TYPE {} {kind}", family.name);
            text += &family.lines;
        }
        text
    }
}

/// A value of a label between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// A name of a label, as upstream makes it out of an object's.
pub(super) fn label(name: &str) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    format!(
        "kubernetes_vmi_label_{}",
        name.chars().map(plain).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_stand_together() {
        let mut page = Page::default();
        page.gauge("a", "First.").put(&[("x", "1"), ("empty", "")], 1);
        page.counter("b_total", "Second.").put(&[], 2.5);
        page.gauge("a", "First.")
            .put(&[("x", "quote \" and \\ and \n")], 3);
        assert_eq!(
            page.write(),
            "# HELP a First.\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"quote \\\" and \\\\ and \\n\"} 3\n\
             # HELP b_total Second.\n# TYPE b_total counter\nb_total 2.5\n"
        );
        assert_eq!(
            label("app.kubernetes.io/name"),
            "kubernetes_vmi_label_app_kubernetes_io_name"
        );
    }
}
