//! Lists: pages at one revision, resource versions, selectors, and the forms that clients ask for.

use std::io::Read;

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Client, Server, config_map, labelled, names, version};

async fn fill(admin: &Client, count: usize) {
    for i in 0..count {
        admin
            .post(CONFIG_MAPS, &labelled(&format!("c{i:03}"), "n", &i.to_string()))
            .await
            .expect(201);
    }
}

fn next(page: &Value, limit: usize) -> String {
    format!(
        "{CONFIG_MAPS}?limit={limit}&continue={}",
        page["metadata"]["continue"].as_str().unwrap_or("")
    )
}

#[tokio::test]
async fn pages_show_the_state_of_the_first_one() {
    let server = Server::start().await;
    let admin = server.admin();
    fill(&admin, 10).await;
    let first = admin.get(&format!("{CONFIG_MAPS}?limit=4")).await.expect(200);
    assert_eq!(
        (names(&first).len(), &first["metadata"]["remainingItemCount"]),
        (4, &json!(6))
    );
    admin.delete(&format!("{CONFIG_MAPS}/c005")).await.expect(200);
    admin.post(CONFIG_MAPS, &config_map("c0045")).await.expect(201);
    admin
        .patch(
            "merge",
            &format!("{CONFIG_MAPS}/c006"),
            &json!({"data": {"k": "new"}}),
        )
        .await
        .expect(200);
    let second = admin.get(&next(&first, 4)).await.expect(200);
    let third = admin.get(&next(&second, 4)).await.expect(200);
    let all: Vec<String> = [&first, &second, &third].into_iter().flat_map(names).collect();
    let expected: Vec<String> = (0..10).map(|i| format!("c{i:03}")).collect();
    assert_eq!(all, expected, "neither the deletion nor the creation shows");
    assert_eq!(second["items"][2]["data"]["k"], "v", "nor the change");
    assert_eq!(
        (version(&first), version(&first)),
        (version(&second), version(&third))
    );
    assert!(third["metadata"].get("continue").is_none());
    assert_eq!(second["metadata"]["remainingItemCount"], 2);
}

#[tokio::test]
async fn pages_of_a_selector_are_full_and_do_not_count_the_rest() {
    let server = Server::start().await;
    let admin = server.admin();
    fill(&admin, 12).await;
    let path = format!("{CONFIG_MAPS}?labelSelector=n+in+(1,5,9,11)");
    let first = admin.get(&format!("{path}&limit=3")).await.expect(200);
    assert_eq!(names(&first), ["c001", "c005", "c009"]);
    assert!(first["metadata"].get("remainingItemCount").is_none());
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = admin
        .get(&format!("{path}&limit=3&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&second), ["c011"]);
    assert!(second["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn an_expired_page_offers_a_way_on() {
    let server = Server::start().await;
    let admin = server.admin();
    fill(&admin, 6).await;
    let first = admin.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    admin
        .patch(
            "merge",
            &format!("{CONFIG_MAPS}/c004"),
            &json!({"data": {"k": "new"}}),
        )
        .await
        .expect(200);
    server.compact(server.revision().await).await;
    let expired = admin.get(&next(&first, 2)).await;
    let status = expired.refused(410, "Expired", "continue parameter is too old");
    let rest = admin.get(&next(&status, 0)).await.expect(200);
    assert_eq!(
        names(&rest),
        ["c002", "c003", "c004", "c005"],
        "it continues where the first page ended"
    );
    assert_eq!(rest["items"][2]["data"]["k"], "new", "with what is there now");
    let page = admin.get(&next(&status, 2)).await.expect(200);
    assert_eq!(names(&page), ["c002", "c003"]);
    assert_eq!(
        names(&admin.get(&next(&page, 2)).await.expect(200)),
        ["c004", "c005"],
        "which can be paged again"
    );

    let exact = format!(
        "{CONFIG_MAPS}?resourceVersion={}&resourceVersionMatch=Exact",
        version(&first)
    );
    let status = admin.get(&exact).await.refused(410, "Expired", "");
    assert!(
        status["metadata"].get("continue").is_none(),
        "a list that never began has nowhere to continue"
    );
}

#[tokio::test]
async fn continue_tokens_are_not_trusted() {
    use base64::Engine as _;
    let server = Server::start().await;
    let admin = server.admin();
    fill(&admin, 3).await;
    server.namespace("other").await;
    admin
        .post("/api/v1/namespaces/other/configmaps", &config_map("secret-plan"))
        .await
        .expect(201);
    let old = server.revision().await;
    admin.post(CONFIG_MAPS, &config_map("later")).await.expect(201);
    let token = |text: String| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    for (start, rv) in [
        ("root/other/a", old),
        ("root/default/c001\0", old),
        ("a", old),
        ("zzz", old),
        ("root/zzz/", old),
        ("/", old),
        ("../../secrets/builtin/root/", old),
        ("zzz", u64::MAX >> 2),
        ("root/other/a", old + 1),
    ] {
        let forged = token(json!({"v": "meta.k8s.io/v1", "rv": rv, "start": start}).to_string());
        let reply = admin
            .get(&format!("{CONFIG_MAPS}?limit=2&continue={forged}"))
            .await;
        assert!(
            reply.code < 500 || reply.code == 504,
            "{start:?} at {rv}: {} {}",
            reply.code,
            reply.text()
        );
        assert!(
            !reply.text().contains("secret-plan"),
            "{start:?} shows another namespace"
        );
    }
    for forged in ["x", "", "e30", "bnVsbA", "W10"] {
        let reply = admin
            .get(&format!("{CONFIG_MAPS}?limit=2&continue={forged}A"))
            .await;
        reply.refused(400, "BadRequest", "continue key is not valid");
    }
}

#[tokio::test]
async fn resource_versions_mean_what_upstream_says() {
    let server = Server::start().await;
    let admin = server.admin();
    fill(&admin, 2).await;
    let at = server.revision().await;
    admin.post(CONFIG_MAPS, &config_map("later")).await.expect(201);
    let now = server.revision().await;
    for (query, code, items, why) in [
        (String::new(), 200, 3, "the newest"),
        (
            "resourceVersion=0".to_owned(),
            200,
            3,
            "any, so what the cache has",
        ),
        (format!("resourceVersion={at}"), 200, 3, "not older than"),
        (
            format!("resourceVersion={at}&resourceVersionMatch=NotOlderThan"),
            200,
            3,
            "not older than",
        ),
        (
            format!("resourceVersion={at}&resourceVersionMatch=NotOlderThan&limit=1"),
            200,
            1,
            "a page not older than",
        ),
        (
            format!("resourceVersion={at}&resourceVersionMatch=Exact"),
            200,
            2,
            "exactly then",
        ),
        (
            format!("resourceVersion={now}&resourceVersionMatch=Exact"),
            200,
            3,
            "exactly now",
        ),
        (
            format!("resourceVersion={at}&limit=10"),
            200,
            2,
            "a page without a rule means exactly",
        ),
        ("resourceVersion=0&limit=2".to_owned(), 200, 2, "a page of any"),
        ("resourceVersion=yesterday".to_owned(), 400, 0, "not a version"),
        ("resourceVersion=-1".to_owned(), 400, 0, "not a version"),
        (
            format!("resourceVersionMatch=Exact&resourceVersion={at}&continue=x"),
            422,
            0,
            "two places to begin",
        ),
        ("resourceVersionMatch=Exact".to_owned(), 422, 0, "exactly what?"),
    ] {
        let reply = admin.get(&format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(reply.code, code, "{query}: {why}: {}", reply.text());
        if code == 200 {
            assert_eq!(names(&reply.json()).len(), items, "{query}: {why}");
        }
    }
    let exact = admin
        .get(&format!(
            "{CONFIG_MAPS}?resourceVersion={at}&resourceVersionMatch=Exact"
        ))
        .await
        .expect(200);
    assert_eq!(version(&exact), at.to_string());
    let future = admin
        .get(&format!("{CONFIG_MAPS}?resourceVersion={}", now + 1_000))
        .await;
    future.refused(504, "Timeout", "Too large resource version");
    assert_eq!(future.header("retry-after"), "1");
}

#[tokio::test]
async fn selectors_select() {
    let server = Server::start().await;
    let admin = server.admin();
    for (name, labels) in [
        ("a", json!({"tier": "web", "rank": "1"})),
        ("b", json!({"tier": "db", "rank": "20"})),
        ("c", json!({"tier": ""})),
        ("d", json!({})),
    ] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = labels;
        admin.post(CONFIG_MAPS, &object).await.expect(201);
    }
    let encode = |text: &str| {
        let mut out = String::new();
        form_urlencoded::Serializer::new(&mut out).append_pair("s", text);
        out[2..].to_owned()
    };
    for (selector, expected) in [
        ("", "abcd"),
        ("tier=web", "a"),
        ("tier==web", "a"),
        ("tier!=web", "bcd"),
        ("tier", "abc"),
        ("!tier", "d"),
        ("tier in (web,db)", "ab"),
        ("tier notin (web, db)", "cd"),
        ("tier=", "c"),
        ("tier in (,web)", "ac"),
        ("rank>1", "b"),
        ("rank<20", "a"),
        ("tier=web,rank=1", "a"),
        ("tier=web,rank=2", ""),
        (" tier = web , rank = 1 ", "a"),
    ] {
        let reply = admin
            .get(&format!("{CONFIG_MAPS}?labelSelector={}", encode(selector)))
            .await;
        assert_eq!(names(&reply.expect(200)).concat(), expected, "{selector:?}");
    }
    for wrong in [
        "tier=web,",
        "=",
        "a b",
        "tier in web",
        "tier in (a",
        "x>y",
        "-a",
        "a/b/c",
        "a=b=c",
        "a=b c",
        ",",
        "a in ()b",
    ] {
        let reply = admin
            .get(&format!("{CONFIG_MAPS}?labelSelector={}", encode(wrong)))
            .await;
        assert_eq!(reply.code, 400, "{wrong:?}: {}", reply.text());
    }
    for (selector, expected) in [
        ("metadata.name=b", "b"),
        ("metadata.name!=b", "acd"),
        ("metadata.namespace=default", "abcd"),
        ("metadata.namespace=other", ""),
        ("metadata.name=a,metadata.name=b", ""),
        ("metadata.name=a,metadata.namespace==default", "a"),
    ] {
        let reply = admin
            .get(&format!("{CONFIG_MAPS}?fieldSelector={}", encode(selector)))
            .await;
        assert_eq!(names(&reply.expect(200)).concat(), expected, "{selector:?}");
        let everywhere = format!("/api/v1/configmaps?fieldSelector={}", encode(selector));
        assert_eq!(
            names(&admin.get(&everywhere).await.expect(200)).concat(),
            expected,
            "everywhere {selector:?}"
        );
    }
    for wrong in ["data.k=v", "metadata.uid=x", "nonsense", "metadata.name=a\\"] {
        let reply = admin
            .get(&format!("{CONFIG_MAPS}?fieldSelector={}", encode(wrong)))
            .await;
        assert_eq!(reply.code, 400, "{wrong:?}: {}", reply.text());
    }
}

#[tokio::test]
async fn the_same_list_in_every_form() {
    let server = Server::start().await;
    let admin = server.admin();
    fill(&admin, 2).await;
    let list = admin.get(CONFIG_MAPS).await.expect(200);
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("ConfigMapList"), &json!("v1"))
    );

    let accept = |kind: &str| admin.with("accept", kind);
    let table = accept("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
        .get(CONFIG_MAPS)
        .await
        .expect(200);
    assert_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][1]["cells"][0], "c001");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(version(&table), version(&list));

    let meta = accept("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
        .get(CONFIG_MAPS)
        .await
        .expect(200);
    assert_eq!(meta["kind"], "PartialObjectMetadataList");
    assert!(meta["items"][0].get("data").is_none());
    assert_eq!(meta["items"][0]["metadata"], list["items"][0]["metadata"]);
    let one = accept("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    assert_eq!(
        one.get(&format!("{CONFIG_MAPS}/c000")).await.expect(200)["kind"],
        "PartialObjectMetadata"
    );

    let yaml = accept("application/yaml").get(CONFIG_MAPS).await;
    assert_eq!(
        (yaml.code, yaml.header("content-type")),
        (200, "application/yaml")
    );
    let limits = fairway_text_yaml::Limits::default();
    // Whether items repeat what the list says of their kind is left to each format.
    let bare = |mut list: Value| {
        for item in list["items"].as_array_mut().unwrap() {
            let fields = item.as_object_mut().unwrap();
            fields.shift_remove("kind");
            fields.shift_remove("apiVersion");
        }
        list
    };
    assert_eq!(
        bare(fairway_text_yaml::from_slice(&yaml.body, limits).unwrap()),
        bare(list.clone()),
        "the same in YAML"
    );

    let refused = accept("application/vnd.kubernetes.protobuf;as=Table")
        .get("/api/v1/nodes")
        .await;
    assert_eq!(refused.code, 406, "{}", refused.text());
    let refused = accept("image/png").get(CONFIG_MAPS).await;
    refused.refused(406, "NotAcceptable", "application/json");
    let pretty = admin.get(&format!("{CONFIG_MAPS}?pretty=true")).await;
    assert!(pretty.text().contains("\n  "), "for people");
    assert_eq!(bare(pretty.json()), bare(list));
}

#[tokio::test]
async fn long_lists_are_compressed_for_who_takes_it() {
    let server = Server::start().await;
    let admin = server.admin();
    for i in 0..20 {
        let mut object = config_map(&format!("big{i:02}"));
        object["data"] = json!({"text": "a".repeat(20_000)});
        admin.post(CONFIG_MAPS, &object).await.expect(201);
    }
    let plain = admin.get(CONFIG_MAPS).await;
    assert_eq!(plain.header("content-encoding"), "");
    let packed = admin
        .with("accept-encoding", "deflate, gzip")
        .get(CONFIG_MAPS)
        .await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.body.len() * 10 < plain.body.len());
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut text)
        .unwrap();
    assert_eq!(text, plain.body);
    let refused = admin.with("accept-encoding", "gzip;q=0").get(CONFIG_MAPS).await;
    assert_eq!(refused.header("content-encoding"), "");
}

#[tokio::test]
async fn a_list_is_one_moment_even_while_others_write() {
    let server = Server::start().await;
    let admin = server.admin();
    // Two objects that are always written one after the other: a list may show the first ahead by one, never behind.
    for name in ["x", "y"] {
        let mut object = config_map(name);
        object["data"] = json!({"n": "0"});
        admin.post(CONFIG_MAPS, &object).await.expect(201);
    }
    let writer = {
        let admin = admin.clone();
        tokio::spawn(async move {
            for n in 1..=150 {
                for name in ["x", "y"] {
                    let patch = json!({"data": {"n": n.to_string()}});
                    admin
                        .patch("merge", &format!("{CONFIG_MAPS}/{name}"), &patch)
                        .await
                        .expect(200);
                }
            }
        })
    };
    let mut last = 0;
    while !writer.is_finished() {
        let list = admin.get(CONFIG_MAPS).await.expect(200);
        let number = |i: usize| -> i64 { list["items"][i]["data"]["n"].as_str().unwrap().parse().unwrap() };
        let (x, y) = (number(0), number(1));
        assert!(x == y || x == y + 1, "x {x}, y {y}");
        let at: u64 = version(&list).parse().unwrap();
        assert!(at >= last, "lists do not go back");
        last = at;
        let newest = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| version(i).parse::<u64>().unwrap())
            .max()
            .unwrap();
        assert!(newest <= at, "no object is newer than its list");
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}
