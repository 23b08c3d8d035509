//! The report of a GitOps run: floors first, then every figure side by side, then the fleet.

use std::fmt::Write;

use super::Measured;
use crate::figures::{Figures, Key};
use crate::report::{Circumstances, number};

/// How a floor is judged.
enum Rule {
    /// Argo CD's figure divided by Fairway's.
    TimesLess(f64),
    /// Fairway's figure alone.
    AtMost(f64),
}

/// Whose figure a floor is about.
#[derive(Clone, Copy)]
enum Run {
    Beside,
    Fleet,
}

struct Floor {
    what: &'static str,
    key: Key,
    unit: &'static str,
    run: Run,
    rule: Rule,
}

const FLOORS: &[Floor] = &[
    Floor {
        what: "CPU per application, 20 applications",
        key: ("20 applications", "cpu"),
        unit: "ms",
        run: Run::Beside,
        rule: Rule::TimesLess(20.0),
    },
    Floor {
        what: "CPU per application, up to 100",
        key: ("100 applications", "cpu"),
        unit: "ms",
        run: Run::Beside,
        rule: Rule::TimesLess(20.0),
    },
    Floor {
        what: "memory, idle",
        key: ("idle", "memory"),
        unit: "MiB",
        run: Run::Beside,
        rule: Rule::TimesLess(10.0),
    },
    Floor {
        what: "memory, 100 applications",
        key: ("100 applications", "memory"),
        unit: "MiB",
        run: Run::Beside,
        rule: Rule::TimesLess(10.0),
    },
    Floor {
        what: "push to Synced, median of 20",
        key: ("push", "p50"),
        unit: "ms",
        run: Run::Beside,
        rule: Rule::AtMost(500.0),
    },
    Floor {
        what: "idle CPU with 1,000 applications",
        key: ("fleet", "cpu percent"),
        unit: "% of a core",
        run: Run::Fleet,
        rule: Rule::AtMost(1.0),
    },
    Floor {
        what: "memory per application, among 1,000",
        key: ("fleet", "kilobytes each"),
        unit: "KiB",
        run: Run::Fleet,
        rule: Rule::AtMost(100.0),
    },
    Floor {
        what: "applications rendered after a commit of one file, of 5,000",
        key: ("one file", "renders"),
        unit: "",
        run: Run::Fleet,
        rule: Rule::AtMost(1.0),
    },
];

/// What is shown of both: name, key, unit.
const BESIDE: &[(&str, Key, &str)] = &[
    (
        "first Application, from its creation to Synced",
        ("first application", "wall"),
        "ms",
    ),
    (
        "next Applications, one by one, median",
        ("next applications", "wall"),
        "ms",
    ),
    (
        "20 at once, until all are Synced",
        ("20 applications", "wall"),
        "s",
    ),
    ("CPU of each of them", ("20 applications", "cpu"), "ms"),
    (
        "69 more at once, until all are Synced",
        ("100 applications", "wall"),
        "s",
    ),
    ("CPU of each of them", ("100 applications", "cpu"), "ms"),
    ("push to Synced, median of 20", ("push", "p50"), "ms"),
    ("the same, the slowest", ("push", "worst"), "ms"),
    ("CPU per push", ("push", "cpu"), "ms"),
    (
        "idle CPU, no applications",
        ("idle", "cpu percent"),
        "% of a core",
    ),
    (
        "idle CPU, 100 applications",
        ("100 applications", "cpu percent"),
        "% of a core",
    ),
    ("memory, idle", ("idle", "memory"), "MiB"),
    ("memory, 100 applications", ("100 applications", "memory"), "MiB"),
    ("memory with the API server, idle", ("idle", "with API"), "MiB"),
    (
        "memory with the API server, 100 applications",
        ("100 applications", "with API"),
        "MiB",
    ),
];

/// Argo CD's components.
const PARTS: [&str; 5] = [
    "redis",
    "argocd-repo-server",
    "argocd-application-controller",
    "argocd-server",
    "argocd-applicationset-controller",
];

const FLEET: &[(&str, Key, &str)] = &[
    ("push of 20,000 files", ("first push", "wall"), "s"),
    ("CPU of it", ("first push", "cpu"), "s"),
    (
        "memory of the first application",
        ("first application", "memory"),
        "MiB",
    ),
    ("1,000 applications until all are Synced", ("fleet", "wall"), "s"),
    ("CPU of each", ("fleet", "cpu"), "ms"),
    (
        "memory of each, just made",
        ("fleet", "kilobytes each, just made"),
        "KiB",
    ),
    ("memory of each, after a rest", ("fleet", "kilobytes each"), "KiB"),
    ("memory with all, after a rest", ("fleet", "memory"), "MiB"),
    ("idle CPU over 60 s", ("fleet", "cpu percent"), "% of a core"),
    ("4,000 more until all are Synced", ("repository", "wall"), "s"),
    ("CPU of each", ("repository", "cpu"), "ms"),
    ("a commit of one file: push to Synced", ("one file", "wall"), "ms"),
    ("CPU of it", ("one file", "cpu"), "ms"),
    ("applications rendered", ("one file", "renders"), ""),
    ("passes over applications", ("one file", "passes"), ""),
    (
        "idle CPU with 5,000",
        ("repository", "cpu percent"),
        "% of a core",
    ),
];

fn value(figures: Option<&Figures>, key: Key) -> Option<f64> {
    figures.and_then(|figures| figures.get(key))
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    let (above, below) = (above?, below?);
    (below > 0.0).then_some(above / below)
}

pub(super) fn write(measured: &Measured) -> String {
    let mut text = Circumstances::gather(1, 1.0).gitops_heading();
    floors(&mut text, measured);
    text += "\n## Side by side\n\nApplications of four objects (ConfigMap, Service, ServiceAccount, Role) in one repository, synced \
             automatically. CPU is that of all processes and their `git` children: Argo CD's with kube-apiserver and etcd. \
             Memory is that of Argo CD's components alone, and of all of Fairway. Argo CD is told of a push by the annotation \
             that its webhook sets.\n\n| what | unit | Fairway | Argo CD | Argo CD / Fairway |\n|---|---|---|---|---|\n";
    for (what, key, unit) in BESIDE {
        let (ours, theirs) = (
            value(measured.fairway.as_ref(), *key),
            value(measured.argocd.as_ref(), *key),
        );
        let times = number(ratio(theirs, ours));
        let _ = writeln!(
            text,
            "| {what} | {unit} | {} | {} | {times} |",
            number(ours),
            number(theirs)
        );
    }
    if let Some(figures) = &measured.argocd {
        text += "\n| component of Argo CD | MiB, idle | MiB, 100 applications |\n|---|---|---|\n";
        for part in PARTS {
            let (idle, full) = (
                figures.get(("idle", part)),
                figures.get(("100 applications", part)),
            );
            let _ = writeln!(text, "| {part} | {} | {} |", number(idle), number(full));
        }
    }
    if let Some(figures) = &measured.fleet {
        let by_set = figures.get(("fleet", "by one set")) == Some(1.0);
        let made = match by_set {
            true => "made by one ApplicationSet",
            false => "made one by one",
        };
        let _ = write!(
            text,
            "\n## Fairway with thousands\n\nOne repository of 5,000 applications, {made}.\n\n| what | unit | Fairway |\n|---|---|---|\n"
        );
        for (what, key, unit) in FLEET {
            let _ = writeln!(text, "| {what} | {unit} | {} |", number(figures.get(*key)));
        }
    }
    text
}

fn floors(text: &mut String, measured: &Measured) {
    *text += "\n## Floors\n\n| what | Fairway | Argo CD | ratio | floor | met |\n|---|---|---|---|---|---|\n";
    for floor in FLOORS {
        let Floor { what, key, unit, .. } = floor;
        let ours = match floor.run {
            Run::Beside => value(measured.fairway.as_ref(), *key),
            Run::Fleet => value(measured.fleet.as_ref(), *key),
        };
        let theirs = match floor.run {
            Run::Beside => value(measured.argocd.as_ref(), *key),
            Run::Fleet => None,
        };
        let times = ratio(theirs, ours);
        let (bound, met) = match floor.rule {
            Rule::TimesLess(least) => (
                format!("{least:.0} times less"),
                times.map(|times| times >= least),
            ),
            Rule::AtMost(most) => (format!("at most {most:.0} {unit}"), ours.map(|ours| ours <= most)),
        };
        let met = match met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "not measured",
        };
        let with_unit = |value: Option<f64>| match value {
            Some(_) => format!("{} {unit}", number(value)).trim_end().to_owned(),
            None => number(None),
        };
        let _ = writeln!(
            text,
            "| {what} | {} | {} | {} | {} | {met} |",
            with_unit(ours),
            with_unit(theirs),
            number(times),
            bound.trim_end()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_judged_by_what_was_measured() {
        let mut fairway = Figures::default();
        fairway.set("20 applications", "cpu", 10.0);
        fairway.set("push", "p50", 600.0);
        let mut argocd = Figures::default();
        argocd.set("20 applications", "cpu", 900.0);
        let measured = Measured {
            fairway: Some(fairway),
            argocd: Some(argocd),
            fleet: None,
        };
        let mut text = String::new();
        floors(&mut text, &measured);
        for line in [
            "| CPU per application, 20 applications | 10.0 ms | 900 ms | 90.0 | 20 times less | yes |",
            "| push to Synced, median of 20 | 600 ms | – | – | at most 500 ms | **no** |",
            "| idle CPU with 1,000 applications | – | – | – | at most 1 % of a core | not measured |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
