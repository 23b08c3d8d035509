//! Each generator alone, combinations, and what is refused.

use serde_json::json;

use super::*;

struct Fixed;

impl Sources for Fixed {
    fn clusters(&self) -> Result<Vec<Cluster>, String> {
        let cluster = |name: &str, environment: &str| Cluster {
            name: name.to_owned(),
            server: format!("https://{name}"),
            labels: [("env".to_owned(), environment.to_owned())].into(),
            ..Cluster::default()
        };
        let local = Cluster {
            name: "in-cluster".to_owned(),
            server: "https://kubernetes.default.svc".to_owned(),
            ..Cluster::default()
        };
        Ok(vec![cluster("East_1", "prod"), cluster("west", "dev"), local])
    }

    fn directories(&self, repository: &str, _: &str) -> Result<Vec<String>, String> {
        match repository {
            "gone" => Err("repository not found".to_owned()),
            _ => Ok([
                "apps",
                "apps/web",
                "apps/db",
                "apps/old",
                "apps/.git",
                "apps/web/deep",
            ]
            .map(str::to_owned)
            .to_vec()),
        }
    }

    fn files(&self, _: &str, _: &str, pattern: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let all = [
            ("envs/dev/config.yaml", "cluster: {name: dev, size: 3}\n"),
            ("envs/prod/config.json", "[{\"a\": 1}, {\"a\": 2}]"),
            ("envs/empty/config.yaml", ""),
        ];
        let fits = |path: &str| fairway_text_glob::matches_between(pattern, path, &['/']);
        Ok(all
            .into_iter()
            .filter(|(path, _)| fits(path))
            .map(|(path, text)| (path.to_owned(), text.into()))
            .collect())
    }

    fn pull_requests(&self, generator: &Value) -> Result<Vec<PullRequest>, String> {
        let pull = |number: u64, branch: &str, title: &str| PullRequest {
            number,
            title: title.to_owned(),
            branch: branch.to_owned(),
            target_branch: "main".to_owned(),
            head: "0123456789abcdef".to_owned(),
            labels: vec!["preview".to_owned()],
            author: "anna".to_owned(),
        };
        match generator["gitea"].is_null() {
            true => Err("no Pull Request provider implementation configured".to_owned()),
            false => Ok(vec![
                pull(7, "feat/Some_thing", "Add a lamp"),
                pull(8, "fix", "Mend it"),
            ]),
        }
    }

    fn others(&self, kind: &str, _: &Value) -> Result<Vec<Params>, String> {
        Err(format!("{kind} is not served here"))
    }
}

/// The first generator's parameters.
fn run(go: bool, generator: Value) -> Result<Value, String> {
    let spec = json!({"goTemplate": go, "generators": [generator]});
    let generated = generate(&spec, &Fixed).map_err(|error| error.to_string())?;
    Ok(generated
        .into_iter()
        .next()
        .unwrap()
        .params
        .into_iter()
        .map(Value::Object)
        .collect())
}

#[test]
fn lists() {
    let elements = json!([{"name": "a", "values": {"x": "1"}}]);
    assert_eq!(
        run(false, json!({"list": {"elements": elements}})).unwrap(),
        json!([{"name": "a", "values.x": "1"}])
    );
    assert_eq!(
        run(true, json!({"list": {"elements": elements}})).unwrap(),
        elements
    );
    let yaml = json!({"list": {"elements": [], "elementsYaml": "- name: a\n- name: b\n"}});
    assert_eq!(run(true, yaml).unwrap(), json!([{"name": "a"}, {"name": "b"}]));
    assert!(
        run(false, json!({"list": {"elements": [{"n": 1}]}}))
            .unwrap_err()
            .contains("n is no string")
    );
    let selected = json!({"list": {"elements": [{"env": "dev"}, {"env": "prod"}]}, "selector": {"matchLabels": {"env": "prod"}}});
    assert_eq!(run(true, selected).unwrap(), json!([{"env": "prod"}]));
}

#[test]
fn clusters() {
    let prod =
        json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}, "values": {"where": "{{name}}!"}}});
    assert_eq!(
        run(false, prod).unwrap(),
        json!([{"name": "East_1", "nameNormalized": "east-1", "server": "https://East_1", "project": "",
                "metadata.labels.env": "prod", "values.where": "East_1!"}])
    );
    let go = json!({"clusters": {"selector": {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]},
        "values": {"where": "{{ .metadata.labels.env }}"}}});
    assert_eq!(
        run(true, go).unwrap(),
        json!([{"name": "west", "nameNormalized": "west", "server": "https://west", "project": "",
                "metadata": {"labels": {"env": "dev"}}, "values": {"where": "dev"}}])
    );
    assert_eq!(
        run(true, json!({"clusters": {}}))
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        3,
        "all, with the one it is in"
    );
    let flat = run(true, json!({"clusters": {"flatList": true}})).unwrap();
    assert_eq!(flat[0]["clusters"].as_array().unwrap().len(), 3);
    assert!(
        run(
            true,
            json!({"clusters": {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}})
        )
        .is_err()
    );
}

#[test]
fn repositories() {
    let directories = json!({"git": {"repoURL": "r", "directories": [{"path": "apps/*"}, {"path": "apps/old", "exclude": true}]}});
    assert_eq!(
        run(false, directories.clone()).unwrap(),
        json!([
            {"path": "apps/db", "path.basename": "db", "path.basenameNormalized": "db", "path[0]": "apps", "path[1]": "db"},
            {"path": "apps/web", "path.basename": "web", "path.basenameNormalized": "web", "path[0]": "apps", "path[1]": "web"},
        ])
    );
    let go = run(true, directories).unwrap();
    assert_eq!(
        go[1]["path"],
        json!({"path": "apps/web", "basename": "web", "basenameNormalized": "web", "segments": ["apps", "web"]})
    );
    let files = |pattern: &str| json!({"git": {"repoURL": "r", "files": [{"path": pattern}], "pathParamPrefix": "my"}});
    let dev = run(false, files("envs/dev/*.yaml")).unwrap();
    assert_eq!(dev[0]["cluster.name"], "dev");
    assert_eq!(dev[0]["cluster.size"], "3");
    assert_eq!(dev[0]["my.path.filename"], "config.yaml");
    let prod = run(true, files("envs/prod/*")).unwrap();
    assert_eq!((&prod[0]["a"], &prod[1]["a"]), (&json!(1), &json!(2)));
    assert_eq!(prod[0]["my"]["path"]["path"], "envs/prod");
    assert_eq!(
        run(true, files("envs/empty/*"))
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let gone = json!({"git": {"repoURL": "gone", "directories": [{"path": "*"}]}});
    assert_eq!(
        run(true, gone).unwrap_err(),
        "error generating params from git: error getting directories from repo: repository not found"
    );
    assert!(run(true, json!({"git": {"repoURL": "r"}})).is_err());
}

#[test]
fn combinations() {
    let list = |elements: Value| json!({"list": {"elements": elements}});
    let matrix = |first: Value, second: Value| json!({"matrix": {"generators": [first, second]}});
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"env": "{{env}}"}}}});
    let by_env = run(
        false,
        matrix(list(json!([{"env": "dev"}, {"env": "prod"}])), clusters),
    )
    .unwrap();
    let names: Vec<&Value> = by_env
        .as_array()
        .unwrap()
        .iter()
        .map(|params| &params["name"])
        .collect();
    assert_eq!(
        names,
        ["west", "East_1"],
        "the second generator is filled with the first's parameters"
    );
    let twice = matrix(list(json!([{"a": "1"}])), list(json!([{"a": "2"}])));
    assert!(run(false, twice.clone()).unwrap_err().contains("duplicate key a"));
    assert_eq!(
        run(true, twice).unwrap(),
        json!([{"a": "1"}]),
        "with trees the first wins"
    );
    let merge = |keys: Value, first: Value, second: Value| json!({"merge": {"mergeKeys": keys, "generators": [first, second]}});
    let base = json!([{"server": "a", "x": "1"}, {"server": "b", "x": "1"}]);
    let over = json!([{"server": "b", "x": "2"}, {"server": "c", "x": "3"}]);
    assert_eq!(
        run(false, merge(json!(["server"]), list(base.clone()), list(over))).unwrap(),
        json!([{"server": "a", "x": "1"}, {"server": "b", "x": "2"}])
    );
    assert!(
        run(false, merge(json!([]), list(base.clone()), list(base.clone())))
            .unwrap_err()
            .contains("no merge keys")
    );
    assert!(
        run(false, merge(json!(["x"]), list(base.clone()), list(base)))
            .unwrap_err()
            .contains("not unique")
    );
}

#[test]
fn pull_requests() {
    let of = |more: Value| {
        let mut generator = json!({"gitea": {}});
        generator
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"pullRequest": generator})
    };
    let all = run(false, of(json!({"values": {"x": "pr-{{number}}"}}))).unwrap();
    assert_eq!(
        all[0],
        json!({
            "number": "7", "title": "Add a lamp", "branch": "feat/Some_thing", "branch_slug": "feat-some-thing",
            "target_branch": "main", "target_branch_slug": "main", "head_sha": "0123456789abcdef",
            "head_short_sha": "01234567", "head_short_sha_7": "0123456", "author": "anna", "values.x": "pr-7",
        })
    );
    assert_eq!(run(true, of(json!({}))).unwrap()[1]["labels"], json!(["preview"]));
    let numbers = |filters: Value| -> Vec<Value> {
        let found = run(true, of(json!({"filters": filters}))).unwrap();
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["number"].clone())
            .collect()
    };
    assert_eq!(numbers(json!([{"branchMatch": "^feat/"}])), ["7"]);
    assert_eq!(
        numbers(json!([{"branchMatch": "^feat/", "titleMatch": "Mend"}])),
        [""; 0]
    );
    assert_eq!(
        numbers(json!([{"branchMatch": "^feat/"}, {"titleMatch": "Mend", "targetBranchMatch": "main"}])),
        ["7", "8"]
    );
    let wrong = run(true, of(json!({"filters": [{"titleMatch": "("}]}))).unwrap_err();
    assert!(
        wrong.starts_with("error compiling TitleMatch regexp \"(\""),
        "{wrong}"
    );
    assert_eq!(
        run(true, json!({"pullRequest": {}})).unwrap_err(),
        "error listing repos: no Pull Request provider implementation configured"
    );
}

#[test]
fn paths_of_a_repository() {
    assert_eq!(directories_of(["a/b/c.yaml", "a/d.yaml", "e.yaml"]), ["a", "a/b"]);
    for (pattern, path, expected) in [
        ("apps/*/config.json", "apps/a/config.json", true),
        ("apps/*/config.json", "apps/a/b/config.json", true),
        ("**/config.json", "x/config.json", true),
        ("apps", "apps/a/config.json", true),
        ("apps", "apps2/config.json", false),
        ("apps/a/config.json", "apps/a/config.json", true),
        ("*.yaml", "apps/a/config.json", false),
    ] {
        assert_eq!(means_file(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn what_is_too_much_or_wrong() {
    let many = Value::Array((0..200).map(|index| json!({"a": index.to_string()})).collect());
    let other = Value::Array((0..200).map(|index| json!({"b": index.to_string()})).collect());
    let product =
        json!({"matrix": {"generators": [{"list": {"elements": many}}, {"list": {"elements": other}}]}});
    assert!(run(true, product).unwrap_err().contains("more than 20000"));
    let mut nested = json!({"list": {"elements": [{"a": "1"}]}});
    for _ in 0..10 {
        nested = json!({"matrix": {"generators": [nested.clone(), nested]}});
    }
    assert!(run(true, nested).unwrap_err().contains("too deeply"));
    assert!(run(true, json!({})).unwrap_err().contains("none of"));
    assert!(
        run(true, json!({"list": {}, "git": {}}))
            .unwrap_err()
            .contains("both list and git")
    );
}
