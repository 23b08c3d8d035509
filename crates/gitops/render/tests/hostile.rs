//! Charts of strangers: each is refused with the place and the limit, soon and without much memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail them")]

use std::io::Write;
use std::time::{Duration, Instant};

use fairway_gitops_helm::Offline;
use fairway_gitops_render::{Params, Ports, render};
use fairway_gitops_tree::{Tree, TreeBuilder};
use flate2::Compression;
use flate2::write::GzEncoder;

const CHART: &str = "apiVersion: v2\nname: c\nversion: 0.1.0\n";
/// Without optimisation and beside other tests; with it, some milliseconds.
const SOON: Duration = Duration::from_secs(60);

fn builder(files: &[(&str, &str)]) -> TreeBuilder {
    let mut builder = Tree::builder();
    builder.file("c/Chart.yaml", CHART.as_bytes()).unwrap();
    for (path, text) in files {
        builder.file(path, text.as_bytes()).unwrap();
    }
    builder
}

fn refusal(tree: &Tree, directory: &str, params: &Params) -> String {
    let environment = Offline::default();
    let ports = Ports {
        environment: &environment,
        fetcher: None,
    };
    let begun = Instant::now();
    let error = render(tree, directory, None, params, ports)
        .unwrap_err()
        .to_string();
    assert!(begun.elapsed() < SOON, "{error}");
    error
}

/// Limits that are hit without filling the memory of whoever runs the tests.
fn small() -> Params {
    let mut params = Params::default();
    params.helm.options.limits.work = 200_000;
    params.helm.options.limits.output = 100_000;
    params
}

#[test]
fn templates_without_end() {
    for (template, limit) in [
        (
            "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
            "maximum template depth (200)",
        ),
        ("{{ tpl .Values.self . }}", "maximum template depth (200)"),
        (
            "{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}",
            "limit of 200000 steps",
        ),
        (
            "{{ range until 1000 }}{{ repeat 1000 \"x\" }}{{ end }}",
            "limit of 100000 bytes of output",
        ),
        (
            "{{ repeat 2000000000 \"x\" }}",
            "2000000000 bytes at once, more than the limit of 100000",
        ),
        (
            "{{ $x := \"xxxxxxxx\" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}",
            "more than the limit of 100000",
        ),
        (
            "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ toYaml $d }}x{{ $d }}",
            "nested levels",
        ),
    ] {
        let tree = builder(&[
            ("c/templates/bad.yaml", template),
            ("c/values.yaml", "self: '{{ tpl .Values.self . }}'\n"),
        ])
        .build();
        let error = refusal(&tree, "c", &small());
        assert!(error.contains(limit), "{template}: {error}");
        assert!(error.contains("bad.yaml"), "{template}: {error}");
    }
}

#[test]
fn aliases_that_multiply() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for at in 1..12 {
        let before = at - 1;
        let items = vec![format!("*a{before}"); 10].join(", ");
        bomb += &format!("a{at}: &a{at} [{items}]\n");
    }
    for (path, named) in [
        ("c/values.yaml", "values.yaml"),
        ("c/templates/bad.yaml", "bad.yaml"),
        ("plain/bad.yaml", "bad.yaml"),
    ] {
        let tree = builder(&[(path, &bomb)]).build();
        let error = refusal(&tree, path.split('/').next().unwrap(), &Params::default());
        assert!(error.contains("excessive aliasing"), "{path}: {error}");
        assert!(error.contains(named), "{path}: {error}");
    }
}

#[test]
fn ways_out_of_a_chart() {
    for (link, target) in [
        ("c/templates/out.yaml", "../../../etc/passwd"),
        ("c/templates/abs.yaml", "/etc/passwd"),
        ("c/values.yaml", "../../secret.yaml"),
        ("c/charts/sub", "../../.."),
    ] {
        let mut builder = builder(&[]);
        builder.link(link, target).unwrap();
        let error = refusal(&builder.build(), "c", &Params::default());
        assert!(
            error.contains("leads out") && error.contains(link),
            "{link}: {error}"
        );
    }
    let mut around = builder(&[]);
    around.link("c/templates/loop", "../templates").unwrap();
    let error = refusal(&around.build(), "c", &Params::default());
    assert!(
        error.contains("symbolic links") || error.contains("directories"),
        "{error}"
    );
}

/// A block of a tar archive for a file of this size.
fn header(name: &str, size: u64) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[156] = b'0';
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[test]
fn archives_that_are_larger_than_they_look() {
    let zeros = vec![0; 1 << 20];
    // A sub-chart of 150 MiB in 150 KiB; a file of 6 MiB; a file that claims to have 8 GiB.
    let many: Vec<(String, u64, usize)> = (0..40).map(|at| (format!("s/f{at}"), 4 << 20, 4)).collect();
    for (name, entries) in [
        ("many.tgz", many),
        ("large.tgz", vec![("s/large".to_owned(), 6 << 20, 6)]),
        ("liar.tgz", vec![("s/liar".to_owned(), 8_589_934_591, 1)]),
    ] {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        for (path, size, mebibytes) in entries {
            packed.write_all(&header(&path, size)).unwrap();
            for _ in 0..mebibytes {
                packed.write_all(&zeros).unwrap();
            }
        }
        let mut builder = builder(&[]);
        builder
            .file(&format!("c/charts/{name}"), packed.finish().unwrap())
            .unwrap();
        let error = refusal(&builder.build(), "c", &Params::default());
        assert!(error.contains("larger than the maximum"), "{name}: {error}");
        assert!(error.contains(name), "{name}: {error}");
    }
}
