//! The plot of a scale run as SVG: one panel per operation and one for memory, both axes logarithmic, two lines each.

use std::fmt::Write;

use super::{Growth, Point};

const PANEL: (f64, f64) = (300.0, 220.0);
const MARGIN: (f64, f64) = (55.0, 40.0);

/// A panel: its title, and what it shows of a point.
type Panel = (&'static str, fn(&Point) -> f64);

const PANELS: [Panel; 5] = [
    ("create, CPU ms", |point| point.create),
    ("GET, CPU ms", |point| point.get),
    ("apply update, CPU ms", |point| point.apply),
    ("LIST of 500, CPU ms", |point| point.page),
    ("resident MiB", |point| point.megabytes),
];

/// Name, colour.
const FAIRWAY: (&str, &str) = ("Fairway", "#0b7a75");
const PEER: (&str, &str) = ("etcd + kube-apiserver", "#b5482a");

pub(super) fn draw(fairway: &Growth, peer: &Growth) -> String {
    let columns = 3.0;
    let (width, height) = (PANEL.0 + MARGIN.0 + 20.0, PANEL.1 + MARGIN.1 + 40.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width * columns,
        height * 2.0
    );
    for (number, (title, figure)) in PANELS.iter().enumerate() {
        let (column, row) = (number % 3, number / 3);
        let _ = writeln!(
            svg,
            "<g transform=\"translate({}, {})\">",
            column as f64 * width + MARGIN.0,
            row as f64 * height + MARGIN.1
        );
        panel(&mut svg, title, &line(fairway, *figure), &line(peer, *figure));
        svg.push_str("</g>\n");
    }
    let _ = writeln!(
        svg,
        "<g transform=\"translate({}, {})\">",
        width * 2.0 + MARGIN.0,
        height + MARGIN.1
    );
    for (number, (name, colour)) in [FAIRWAY, PEER].iter().enumerate() {
        let y = 30 + number * 24;
        let _ = writeln!(
            svg,
            "<line x1=\"0\" x2=\"30\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"38\" y=\"{}\">{name}</text>",
            y + 4
        );
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn line(server: &Growth, figure: fn(&Point) -> f64) -> Vec<(f64, f64)> {
    server
        .points
        .iter()
        .map(|point| (point.objects as f64, figure(point).max(1e-4)))
        .collect()
}

fn panel(svg: &mut String, title: &str, ours: &[(f64, f64)], theirs: &[(f64, f64)]) {
    let all = || ours.iter().chain(theirs);
    let (left, right) = decades(all().map(|point| point.0));
    let (bottom, top) = decades(all().map(|point| point.1));
    let x = |value: f64| (value.log10() - left) / (right - left) * PANEL.0;
    let y = |value: f64| PANEL.1 - (value.log10() - bottom) / (top - bottom) * PANEL.1;
    let _ = writeln!(
        svg,
        "<text x=\"0\" y=\"-12\" font-weight=\"bold\">{title}</text>\
         <rect width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>",
        PANEL.0, PANEL.1
    );
    for decade in steps(bottom, top) {
        let (value, at) = (10_f64.powf(decade), y(10_f64.powf(decade)));
        let _ = writeln!(
            svg,
            "<line x1=\"0\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" stroke=\"#ddd\"/>\
             <text x=\"-6\" y=\"{}\" text-anchor=\"end\">{value}</text>",
            PANEL.0,
            at + 4.0
        );
    }
    for decade in steps(left, right) {
        let (value, at) = (10_f64.powf(decade), x(10_f64.powf(decade)));
        let _ = writeln!(
            svg,
            "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
            PANEL.1 + 16.0
        );
    }
    for (points, (_, colour)) in [(ours, FAIRWAY), (theirs, PEER)] {
        let path: Vec<String> = points
            .iter()
            .map(|(objects, value)| format!("{:.1},{:.1}", x(*objects), y(*value)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
    }
}

/// The powers of ten around the values; at least one decade apart.
fn decades(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
        (low.min(value.log10()), high.max(value.log10()))
    });
    let (low, high) = (low.floor(), high.ceil());
    (low, high.max(low + 1.0))
}

fn steps(low: f64, high: f64) -> impl Iterator<Item = f64> {
    (low as i32..=high as i32).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_enclose_their_values() {
        assert_eq!(decades([0.02, 3.0].into_iter()), (-2.0, 1.0));
        assert_eq!(decades([10.0, 10.0].into_iter()), (1.0, 2.0));
    }

    #[test]
    fn larger_values_are_drawn_higher() {
        let growth = |cost: f64| Growth {
            points: [1_000, 100_000]
                .map(|objects| Point {
                    objects,
                    create: cost,
                    get: cost,
                    apply: cost,
                    page: cost,
                    megabytes: cost,
                })
                .into(),
            crds_seconds: 0.0,
            megabytes_with_crds: 0.0,
            megabytes_with_watchers: 0.0,
            event: 0.0,
            ready_ms: 0.0,
            megabytes_after_start: 0.0,
        };
        let svg = draw(&growth(1.0), &growth(10.0));
        // One decade from bottom to top: Fairway along the bottom of each panel, the peer along its top.
        assert_eq!(
            svg.matches("points=\"0.0,220.0 300.0,220.0\"").count(),
            PANELS.len()
        );
        assert_eq!(svg.matches("points=\"0.0,0.0 300.0,0.0\"").count(), PANELS.len());
    }
}
