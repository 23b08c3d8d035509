//! Locations in repositories that are in memory: what is read, what is refused, and where reading ends.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::*;

const HOST: &str = "https://git.test";

/// Repositories in memory.
struct Memory(BTreeMap<&'static str, String>);

struct Commit(BTreeMap<&'static str, String>);

impl Snapshot for Commit {
    fn commit(&self) -> &str {
        "abc"
    }

    fn read(&self, path: &str) -> Result<Option<Arc<[u8]>>, String> {
        match path {
            "broken.yaml" => Err("the disk is gone".to_owned()),
            path => Ok(self.0.get(path).map(|text| text.as_bytes().into())),
        }
    }

    fn list(&self) -> Result<Vec<String>, String> {
        Ok(self.0.keys().map(|path| (*path).to_owned()).collect())
    }
}

impl Files for Memory {
    fn host(&self) -> &str {
        HOST
    }

    fn open<'a>(
        &'a self,
        asker: Option<&'a WorkspaceId>,
        hosted: &'a Hosted,
    ) -> BoxFuture<'a, Result<Arc<dyn Snapshot>, FilesError>> {
        let opened: Result<Arc<dyn Snapshot>, FilesError> = match hosted.repository.as_str() {
            "app" => Ok(Arc::new(Commit(self.0.clone()))),
            "private" if asker.is_some() => Ok(Arc::new(Commit(self.0.clone()))),
            other => Err(FilesError::NotFound(format!(
                "there is no repository root/{other}"
            ))),
        };
        async move { opened }.boxed()
    }

    fn catalog_file<'a>(
        &'a self,
        _: &'a WorkspaceId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Hosted>, FilesError>> {
        async { Ok(None) }.boxed()
    }
}

async fn reading(files: &[(&'static str, &str)], target: &str) -> Reading {
    let files = Memory(
        files
            .iter()
            .map(|(path, text)| (*path, (*text).to_owned()))
            .collect(),
    );
    let origin = LocationRef {
        kind: "url".to_owned(),
        target: target.to_owned(),
    };
    let outbound = Outbound::new(fairway_outbound::AllowedHosts::default());
    read(&files, &outbound, &WorkspaceId::root(), &origin).await
}

async fn of(files: &[(&'static str, &str)]) -> Reading {
    reading(
        files,
        &format!("{HOST}/root/app/src/branch/main/catalog-info.yaml"),
    )
    .await
}

fn names(reading: &Reading) -> Vec<String> {
    let all = reading.wanted.iter().skip(1);
    all.filter_map(|wanted| EntityRef::of(&wanted.entity))
        .map(|reference| reference.to_string())
        .collect()
}

fn component(name: &str) -> String {
    format!(
        "apiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata:\n  name: {name}\nspec:\n  type: service\n  lifecycle: x\n  owner: team\n"
    )
}

fn location(targets: &str) -> String {
    format!(
        "apiVersion: backstage.io/v1alpha1\nkind: Location\nmetadata:\n  name: more\nspec:\n  targets: {targets}\n"
    )
}

#[tokio::test]
async fn a_file_and_what_it_leads_to() {
    let found = of(&[
        (
            "catalog-info.yaml",
            &(component("a") + "---\n" + &location("[./sub/b.yaml, './apis/*.yaml']")),
        ),
        ("sub/b.yaml", &component("b")),
        ("apis/c.yaml", &component("c")),
        ("apis/deep/d.yaml", &component("d")),
    ])
    .await;
    assert_eq!(found.errors, [""; 0]);
    assert_eq!(
        names(&found),
        [
            "component:default/a",
            "location:default/more",
            "component:default/b",
            "component:default/c"
        ]
    );
    let own = EntityRef::of(&found.wanted[0].entity).unwrap().to_string();
    assert_eq!(found.wanted[1].parent.as_deref(), Some(own.as_str()));
    assert_eq!(found.wanted[3].parent.as_deref(), Some("location:default/more"));
    let annotations = &found.wanted[3].entity["metadata"]["annotations"];
    assert_eq!(
        annotations["backstage.io/managed-by-location"],
        format!("url:{HOST}/root/app/src/branch/main/sub/b.yaml")
    );
    assert_eq!(found.commit.as_deref(), Some("abc"));
    assert_eq!(found.repositories, ["root/app"]);
    assert!(!found.spared.all && !found.is_remote);
}

#[tokio::test]
async fn what_is_wrong_is_told_and_stops_nothing_else() {
    let files =
        component("good") + "---\n" + &component("bad").replace("  owner: team\n", "") + "---\nkind: x\n";
    let found = of(&[("catalog-info.yaml", &files)]).await;
    assert_eq!(names(&found), ["component:default/good"]);
    assert_eq!(found.errors.len(), 2, "{:?}", found.errors);
    assert!(found.errors[0].contains("/spec must have required property 'owner'"));
    assert!(found.errors[1].contains("Malformed envelope"));
    assert!(found.spared.names.contains("component.default.bad") && !found.spared.all);
}

#[tokio::test]
async fn what_cannot_be_read_spares_what_is_known() {
    for (targets, part, transient) in [
        ("[./none.yaml]", "NotFoundError: none.yaml is not there", false),
        ("[./broken.yaml]", "the disk is gone", true),
        ("[../x.yaml]", "is not a path within its repository", false),
        ("[/etc/passwd]", "is not a path within its repository", false),
        (
            "['https://git.test/root/other/src/branch/main/a.yaml']",
            "there is no repository root/other",
            false,
        ),
        ("['https://git.test/root']", "is no file of a repository", false),
        ("['https://127.0.0.1:1/a.yaml']", "NotAllowedError", false),
        ("['https://127.0.0.1:1/*.yaml']", "patterns are read only", false),
        ("[./wrong.yaml]", "YAML error", false),
    ] {
        let found = of(&[
            (
                "catalog-info.yaml",
                &(component("a") + "---\n" + &location(targets)),
            ),
            ("wrong.yaml", "a: ["),
        ])
        .await;
        assert_eq!(names(&found).len(), 2, "{targets}");
        assert_eq!(found.errors.len(), 1, "{targets}: {:?}", found.errors);
        assert!(found.errors[0].contains(part), "{targets}: {:?}", found.errors);
        assert_eq!(found.is_transient, transient, "{targets}");
    }
    let optional = location("[./none.yaml]") + "  presence: optional\n";
    let found = of(&[("catalog-info.yaml", &optional)]).await;
    assert!(found.errors.is_empty() && !found.spared.all);
}

#[tokio::test]
async fn files_that_lead_to_each_other_end() {
    let found = of(&[
        ("catalog-info.yaml", &location("[./b.yaml]")),
        (
            "b.yaml",
            &location("[./catalog-info.yaml, ./b.yaml]").replace("more", "b"),
        ),
    ])
    .await;
    assert_eq!(names(&found), ["location:default/more", "location:default/b"]);
    assert!(found.errors.is_empty());
}

#[tokio::test]
async fn chains_and_crowds_are_bounded() {
    let chain: Vec<(&'static str, String)> = [
        "catalog-info.yaml",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "10",
        "11",
        "12",
    ]
    .windows(2)
    .map(|pair| {
        (
            pair[0],
            location(&format!("['./{}']", pair[1])).replace("more", &format!("n{}", pair[1])),
        )
    })
    .collect();
    let chain: Vec<(&'static str, &str)> = chain.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let found = of(&chain).await;
    assert_eq!(names(&found).len(), MAX_DEPTH + 1);
    assert!(found.errors[0].contains("10 steps") && found.spared.all);

    let many: Vec<String> = (0..2 * MAX_FILES).map(|n| format!("./{n}.yaml")).collect();
    let found = of(&[("catalog-info.yaml", &location(&format!("{many:?}")))]).await;
    assert!(found.files.len() <= MAX_FILES && found.errors.len() <= MAX_ERRORS);

    let crowd: String = (0..900).map(|n| component(&format!("c{n}")) + "---\n").collect();
    let files = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let listed: Vec<String> = files.iter().map(|name| format!("./{name}")).collect();
    let first = location(&format!("{listed:?}"));
    let mut all: Vec<(&'static str, &str)> = files.iter().map(|name| (*name, crowd.as_str())).collect();
    all.push(("catalog-info.yaml", &first));
    let found = of(&all).await;
    assert!(found.wanted.len() <= MAX_ENTITIES + 1 && found.spared.all);
}

#[tokio::test]
async fn parts_of_entities_come_from_files() {
    let api = |path: &str| {
        format!(
            "apiVersion: backstage.io/v1alpha1\nkind: API\nmetadata:\n  name: a\nspec:\n  type: openapi\n  lifecycle: x\n  owner: t\n  definition:\n    $text: {path}\n"
        )
    };
    let found = of(&[
        ("catalog-info.yaml", &api("./openapi.yaml")),
        ("openapi.yaml", "openapi: 3.0.0"),
    ])
    .await;
    assert_eq!(found.wanted[1].entity["spec"]["definition"], "openapi: 3.0.0");
    for path in ["./none.yaml", "../../etc/passwd"] {
        let found = of(&[("catalog-info.yaml", &api(path))]).await;
        assert_eq!(found.errors.len(), 1, "{path}");
        assert!(found.spared.names.contains("api.default.a"), "{path}");
    }
}

#[tokio::test]
async fn a_file_does_not_show_another_private_repository() {
    let private = "https://git.test/root/private/src/branch/main/secret.yaml";
    let api = format!(
        "apiVersion: backstage.io/v1alpha1\nkind: API\nmetadata:\n  name: a\nspec:\n  type: x\n  lifecycle: x\n  owner: t\n  definition:\n    $text: {private}\n"
    );
    let files = [
        (
            "catalog-info.yaml",
            api + "---\n" + &location(&format!("['{private}']")),
        ),
        ("secret.yaml", component("theirs")),
    ];
    let files: Vec<(&'static str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let found = of(&files).await;
    // Entities of the workspace's repositories are for its catalog; other files are not for who may only push elsewhere.
    assert_eq!(
        names(&found),
        ["location:default/more", "component:default/theirs"]
    );
    assert!(
        found.errors[0].contains("there is no repository root/private"),
        "{:?}",
        found.errors
    );
}

#[tokio::test]
async fn a_location_that_is_not_there_is_told() {
    let found = reading(
        &[],
        &format!("{HOST}/root/none/src/branch/main/catalog-info.yaml"),
    )
    .await;
    assert!(found.errors[0].contains("there is no repository root/none"));
    assert_eq!(found.repositories, ["root/none"]);
    assert!(found.spared.all);
}
