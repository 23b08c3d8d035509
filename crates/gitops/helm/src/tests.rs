//! Charts that are made up here, and what Helm makes of them.

use std::io::Write;

use fairway_gitops_tree::Tree;

use crate::{
    ArchiveLimits, Capabilities, Chart, Offline, Options, Output, Release, Rendered, ValuesBuilder, render,
};

fn chart(files: &[(&str, &str)]) -> Result<Chart, String> {
    let mut all = vec![("Chart.yaml", "apiVersion: v2\nname: demo\nversion: 0.1.0\n")];
    all.retain(|(path, _)| !files.iter().any(|(own, _)| own == path));
    all.extend(files);
    let tree = Tree::of(
        all.into_iter()
            .map(|(path, text)| (format!("charts/demo/{path}"), text.as_bytes())),
    )
    .unwrap();
    Chart::load(&tree.reader(), "charts/demo").map_err(|error| error.to_string())
}

fn rendered(files: &[(&str, &str)], set: &[&str]) -> Result<Rendered, String> {
    let chart = chart(files)?;
    let mut values = ValuesBuilder::new();
    for line in set {
        values.set(line).map_err(|error| error.to_string())?;
    }
    render(
        &chart,
        &values.build(),
        &Release {
            name: "r".to_owned(),
            ..Release::default()
        },
        &Capabilities::default(),
        &Options {
            crds: true,
            ..Options::default()
        },
        &Offline::default(),
    )
    .map_err(|error| error.to_string())
}

fn text(files: &[(&str, &str)], set: &[&str]) -> Result<String, String> {
    rendered(files, set).map(|rendered| {
        rendered.to_yaml(Output {
            crds: true,
            ..Output::default()
        })
    })
}

#[test]
fn values_come_from_the_chart_and_from_the_user() {
    let files = [
        ("values.yaml", "a: 1\nt:\n  x: 1\n  z: 2\nb: n\nbig: 1000000\n"),
        (
            "templates/a.yaml",
            "a: {{ .Values.a }}\nt: {{ .Values.t | toJson }}\nn: {{ .Values.b }} {{ .Values.big }} {{ .Release.Name }} {{ .Chart.Name }} {{ .Template.Name }}\n",
        ),
    ];
    let expected = "---\n# Source: demo/templates/a.yaml\na: 5\nt: {\"z\":2}\nn: false 1e+06 r demo demo/templates/a.yaml\n";
    assert_eq!(text(&files, &["a=5,t.x=null"]).as_deref(), Ok(expected));
}

#[test]
fn sub_charts_have_values_conditions_aliases_and_globals() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: demo\nversion: 0.1.0\ndependencies:\n- name: sub\n  version: 1.x\n  alias: one\n- name: sub\n  version: '>=1'\n  alias: two\n  condition: two.enabled\n- name: other\n  version: '*'\n  tags: [extra]\n  import-values: [data]\n",
        ),
        (
            "values.yaml",
            "global: {g: 1}\none: {v: parent}\ntags: {extra: true}\n",
        ),
        (
            "templates/a.yaml",
            "imported: {{ .Values.fromOther }}\nsub: {{ .Subcharts.one.Values.v }}\n",
        ),
        (
            "charts/sub/Chart.yaml",
            "apiVersion: v2\nname: sub\nversion: 1.2.3\n",
        ),
        ("charts/sub/values.yaml", "v: own\n"),
        (
            "charts/sub/templates/s.yaml",
            "name: {{ .Chart.Name }}\nv: {{ .Values.v }}\ng: {{ .Values.global.g }}\n",
        ),
        (
            "charts/other/Chart.yaml",
            "apiVersion: v2\nname: other\nversion: 0.0.1\n",
        ),
        (
            "charts/other/values.yaml",
            "exports: {data: {fromOther: yes-it-is}}\n",
        ),
    ];
    let both = text(&files, &[]).unwrap();
    assert!(both.contains("name: one\nv: parent\ng: 1"), "{both}");
    assert!(both.contains("name: two\nv: own\ng: 1"), "{both}");
    assert!(both.contains("imported: yes-it-is\nsub: parent"), "{both}");
    let one = text(&files, &["two.enabled=false"]).unwrap();
    assert!(!one.contains("name: two"), "{one}");
}

#[test]
fn manifests_are_split_sorted_and_hooks_set_apart() {
    let files = [
        ("crds/c.yaml", "kind: CustomResourceDefinition\n"),
        (
            "templates/a.yaml",
            "kind: Zebra\n---\nkind: Deployment\n---\n\n---\nkind: Aardvark\n",
        ),
        ("templates/b.yaml", "kind: Service\n"),
        (
            "templates/h.yaml",
            "kind: Job\nmetadata:\n  name: h\n  annotations: {helm.sh/hook: 'pre-install, test', helm.sh/hook-weight: \"-5\"}\n",
        ),
        ("templates/empty.yaml", "{{ if false }}x{{ end }}\n"),
        ("templates/NOTES.txt", "hello {{ .Release.Name }}"),
    ];
    let found = rendered(&files, &[]).unwrap();
    let kinds: Vec<&str> = found
        .manifests
        .iter()
        .map(|manifest| manifest.kind.as_str())
        .collect();
    assert_eq!(kinds, ["Service", "Deployment", "Aardvark", "Zebra"]);
    assert_eq!(
        (found.hooks[0].events.join("+"), found.hooks[0].weight),
        ("pre-install+test".to_owned(), -5)
    );
    assert_eq!(
        (found.notes.as_str(), found.crds.len(), found.tests().count()),
        ("hello r", 1, 1)
    );
}

#[test]
fn errors_say_where_and_why() {
    let cases: &[(&str, &str)] = &[
        (
            "{{ .Values.x.y }}",
            "template: demo/templates/a.yaml:1:10: executing \"demo/templates/a.yaml\" at <.Values.x.y>: nil pointer evaluating interface {}.y",
        ),
        (
            "\n{{ fail \"no: way\" }}",
            "execution error at (demo/templates/a.yaml:2:3): no: way",
        ),
        (
            "{{ required \"need x\" .Values.x }}",
            "execution error at (demo/templates/a.yaml:1:3): need x",
        ),
        (
            "{{ if }}",
            "parse error at (demo/templates/a.yaml:1): missing value for if",
        ),
        (
            "{{ include \"nope\" . }}",
            "template: demo/templates/a.yaml:1:3: executing \"demo/templates/a.yaml\" at <include \"nope\" .>: error calling include: template: no template \"nope\" associated with template \"gotpl\"",
        ),
        (
            "{{ tpl \"{{ .x.y }}\" (dict \"x\" nil) }}",
            "template: demo/templates/a.yaml:1:3: executing \"demo/templates/a.yaml\" at <tpl \"{{ .x.y }}\" (dict \"x\" nil)>: error calling tpl: error during tpl function execution for \"{{ .x.y }}\": template: gotpl:1:5: executing \"gotpl\" at <.x.y>: nil pointer evaluating interface {}.y",
        ),
        (
            "a: b: c",
            "YAML parse error on demo/templates/a.yaml: error converting YAML to JSON: yaml: mapping values are not allowed in this context",
        ),
    ];
    for (template, expected) in cases {
        let error = text(&[("templates/a.yaml", template)], &[]).unwrap_err();
        assert_eq!(error, *expected, "{template}");
    }
    assert!(
        chart(&[("Chart.yaml", "name: x\n")])
            .unwrap_err()
            .contains("chart.metadata.version is required")
    );
    let recursion = [
        (
            "templates/_h.tpl",
            "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}",
        ),
        ("templates/a.yaml", "{{ include \"a\" . }}"),
    ];
    assert!(
        text(&recursion, &[])
            .unwrap_err()
            .contains("exceeded maximum template depth")
    );
}

#[test]
fn schemas_are_checked_in_helms_words() {
    let schema = r#"{"type":"object","required":["name"],"properties":{"name":{},"port":{"type":"integer","maximum":10},"kind":{"enum":["a","b"]}},"additionalProperties":false}"#;
    let files = [
        ("values.schema.json", schema),
        ("values.yaml", "port: 80\nkind: c\nzzz: 1\n"),
    ];
    let expected = "values don't meet the specifications of the schema(s) in the following chart(s):\ndemo:\n- (root): name is required\n- (root): Additional property zzz is not allowed\n- port: Must be less than or equal to 10\n- kind: kind must be one of the following: \"a\", \"b\"\n";
    assert_eq!(text(&files, &[]).unwrap_err(), expected);
    assert!(text(&files, &["name=x,port=8,kind=a,zzz=null"]).is_ok());
}

#[test]
fn files_are_found_and_ignored() {
    let files = [
        (".helmignore", "*.bak\nsecret/\n"),
        ("conf/a.txt", "one\ntwo\n"),
        ("conf/b.bin", "\u{1}"),
        ("conf/x.bak", "no"),
        ("secret/s", "no"),
        ("templates/.hidden.yaml", "no: no"),
        (
            "templates/a.yaml",
            "{{ range $p, $_ := .Files.Glob \"**\" }}{{ $p }} {{ end }}\n{{ (.Files.Glob \"conf/*.txt\").AsConfig }}\n{{ .Files.Get \"conf/a.txt\" | b64enc }} {{ .Files.Lines \"conf/a.txt\" }} {{ .Files.Get \"none\" }}",
        ),
    ];
    let found = text(&files, &[]).unwrap_err();
    assert!(found.contains("YAML parse error"), "{found}");
    let mut files = files;
    files[6].1 = "x: |\n  {{ range $p, $_ := .Files.Glob \"**\" }}{{ $p }} {{ end }}\ny:\n{{ (.Files.Glob \"conf/*.txt\").AsConfig | indent 2 }}\nz: {{ .Files.Get \"conf/a.txt\" | b64enc }} {{ .Files.Lines \"conf/a.txt\" }}{{ .Files.Get \"none\" }}\n";
    let found = text(&files, &[]).unwrap();
    assert!(
        found.contains("  .helmignore conf/a.txt conf/b.bin \n"),
        "{found}"
    );
    assert!(
        found.contains("y:\n  a.txt: |\n    one\n    two\nz: b25lCnR3bwo= [one two]"),
        "{found}"
    );
}

/// A tar with one file per name.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, data) in files {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        let size = format!("{:011o}", data.len());
        header[124..135].copy_from_slice(size.as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[263..265].copy_from_slice(b"00");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        header[154] = 0;
        tar.extend_from_slice(&header);
        tar.extend_from_slice(data);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn archives_are_read_within_limits() {
    let own: &[u8] = b"apiVersion: v2\nname: demo\nversion: 0.1.0\n";
    let good = archive(&[("demo/Chart.yaml", own), ("demo/templates/a.yaml", b"a: 1")]);
    let loaded = Chart::from_archive(&good, ArchiveLimits::default()).unwrap();
    assert_eq!((loaded.name(), loaded.templates.len()), ("demo", 1));
    let limits = ArchiveLimits {
        total_bytes: 60,
        file_bytes: 50,
        files: 2,
    };
    let cases: &[(Vec<u8>, &str)] = &[
        (archive(&[("demo/../../etc/passwd", b"x")]), "parent directory"),
        (archive(&[("demo//etc/passwd", b"x")]), "absolute paths"),
        (archive(&[("Chart.yaml", own)]), "outside the base directory"),
        (archive(&[("demo/big", &[b'x'; 51])]), "maximum file size 50"),
        (
            archive(&[("demo/a", &[b'x'; 40]), ("demo/b", &[b'x'; 40])]),
            "maximum file size 60",
        ),
        (
            archive(&[("demo/a", b""), ("demo/b", b""), ("demo/c", b"")]),
            "more than 2 files",
        ),
        (b"PK\x03\x04".to_vec(), "gzipped archive"),
        (good[..good.len() / 2].to_vec(), "broken"),
    ];
    for (bytes, expected) in cases {
        let error = Chart::from_archive(bytes, limits).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn broken_archives_end_in_an_error() {
    let good = archive(&[
        ("demo/Chart.yaml", b"apiVersion: v2\nname: demo\nversion: 0.1.0\n"),
        ("demo/values.yaml", b"a: 1\n"),
    ]);
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(good.as_slice()), &mut plain).unwrap();
    let mut state = 1_u64;
    for _ in 0..3000 {
        let mut bytes = plain.clone();
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(&bytes).unwrap();
        let _ = Chart::from_archive(&gzip.finish().unwrap(), ArchiveLimits::default());
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let files = [(
        "templates/a.yaml",
        "a: {{ randAlphaNum 8 }} {{ uuidv4 }} {{ now | unixEpoch }}\n",
    )];
    assert_eq!(text(&files, &[]), text(&files, &[]));
}

#[test]
fn a_chart_is_rendered_by_many_threads_at_once() {
    let files = [
        ("values.yaml", "count: 3\n"),
        (
            "templates/_h.tpl",
            "{{ define \"h\" }}{{ .Values.count }}{{ end }}",
        ),
        ("templates/a.yaml", "a: {{ include \"h\" . }}\n"),
    ];
    let chart = chart(&files).unwrap();
    let texts: Vec<String> = std::thread::scope(|scope| {
        let renderings: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let (release, capabilities) = (Release::default(), Capabilities::default());
                    let values = ValuesBuilder::new().build();
                    let options = Options::default();
                    render(
                        &chart,
                        &values,
                        &release,
                        &capabilities,
                        &options,
                        &Offline::default(),
                    )
                    .unwrap()
                    .to_yaml(Output::default())
                })
            })
            .collect();
        renderings
            .into_iter()
            .map(|rendering| rendering.join().unwrap())
            .collect()
    });
    assert!(texts.iter().all(|text| text.ends_with("a: 3\n")), "{texts:?}");
}
