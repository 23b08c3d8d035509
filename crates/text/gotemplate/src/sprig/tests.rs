//! sprig's functions. Expected texts come from `helm template`.

use crate::tests::run_with;
use crate::{Functions, Limits};

fn functions() -> Functions {
    let mut functions = Functions::builtin();
    super::add(&mut functions);
    functions
}

fn run(text: &str) -> Result<String, String> {
    let data = serde_json::json!({"m": {"a": 1.0, "b": {"c": "d"}}, "l": ["x", 1.5, null]});
    run_with(&functions(), Limits::default(), text, &data)
}

#[test]
fn functions_answer_as_sprig_does() {
    let cases: &[(&str, &str)] = &[
        (
            "{{ \"hello world\" | title }} {{ \"HTTPServer2Go\" | snakecase }} {{ \"foo_bar-baz\" | camelcase }}",
            "Hello World http_server2_go FooBarBaz",
        ),
        (
            "{{ list 1 \"a\" nil | join \"-\" }} {{ split \"$\" \"a$b\" }}",
            "1-a map[_0:a _1:b]",
        ),
        ("{{ dict \"a\" 1 \"b\" | toJson }}", "{\"a\":1,\"b\":\"\"}"),
        (
            "{{ add 1 \"2\" 3.7 }} {{ mul 2 3 }} {{ div 7 2 }} {{ addf 0.1 0.2 }} {{ divf 1 3 }}",
            "6 6 3 0.3 0.3333333333333333",
        ),
        (
            "{{ round 123.5555 3 }} {{ floor 1.9 }} {{ max 1 5 3 }} {{ until 3 }} {{ seq 1 2 5 }}",
            "123.556 1 5 [0 1 2] 1 3 5",
        ),
        (
            "{{ $d := dict }}{{ $_ := set $d \"x\" (list 1) }}{{ $d }} {{ hasKey $d \"x\" }} {{ keys $d }}",
            "map[x:[1]] true [x]",
        ),
        (
            "{{ merge (dict \"a\" 1 \"l\" (list 1)) (dict \"a\" 2 \"b\" 3 \"l\" (list 2)) }}",
            "map[a:1 b:3 l:[1]]",
        ),
        (
            "{{ mergeOverwrite (dict \"a\" 1 \"m\" (dict \"x\" 1)) (dict \"a\" 2 \"m\" (dict \"y\" 2)) }}",
            "map[a:2 m:map[x:1 y:2]]",
        ),
        (
            "{{ dig \"b\" \"c\" \"none\" .m }} {{ dig \"b\" \"x\" \"none\" .m }}",
            "d none",
        ),
        (
            "{{ regexReplaceAll \"a(x*)b\" \"-ab-axxb-\" \"${1}W\" }} {{ regexFindAll \"[2,4]\" \"1234\" -1 }}",
            "-W-xxW- [2 4]",
        ),
        (
            "{{ semverCompare \">=1.2-0\" \"1.3.0-alpha\" }} {{ semverCompare \"^1.2\" \"2.0.0\" }} {{ (semver \"v1.2.3\").Minor }}",
            "true false 2",
        ),
        (
            "{{ \"abc\" | b64enc | b64dec }} {{ \"abc\" | b32enc }} {{ sha256sum \"a\" | trunc 8 }} {{ adler32sum \"a\" }}",
            "abc MFRGG=== ca978112 6422626",
        ),
        (
            "{{ kindOf 1 }} {{ typeOf (list) }} {{ kindOf .m }} {{ kindOf nil }} {{ typeOf (int64 1) }}",
            "int []interface {} map invalid int64",
        ),
        (
            "{{ ternary \"y\" \"n\" true }} {{ default \"d\" \"\" }} {{ coalesce 0 \"\" \"z\" }} {{ empty .m }}",
            "y d z false",
        ),
        (
            "{{ quote \"a\" 1 nil }} {{ squote \"b\" }} {{ cat 1 \"b\" nil }} {{ indent 2 \"a\\nb\" }}",
            "\"a\" \"1\" 'b' 1 b   a\n  b",
        ),
        (
            "{{ date \"2006-01-02\" 0 }} {{ duration \"90\" }} {{ durationRound \"2h10m5s\" }}",
            "1970-01-01 1m30s 2h",
        ),
        (
            "{{ urlJoin (urlParse \"http://u:p@h:80/p?q=1#f\") }} {{ (urlParse \"http://h:80/\").hostname }}",
            "http://u:p@h:80/p?q=1#f h",
        ),
        (
            "{{ base \"/a/b.c\" }} {{ dir \"/a/b.c\" }} {{ ext \"b.c\" }} {{ clean \"/a/../b\" }}",
            "b.c /a .c /b",
        ),
        (
            "{{ has 1.5 .l }} {{ without .l \"x\" }} {{ uniq (list 1 1 2) }} {{ chunk 2 (list 1 2 3) }}",
            "true [1.5 <nil>] [1 2] [[1 2] [3]]",
        ),
        (
            "{{ wrap 5 \"aaa bbb ccc\" }}|{{ abbrev 5 \"hello world\" }}|{{ substr 1 3 \"hello\" }}|{{ trunc -2 \"abc\" }}",
            "aaa\nbbb\nccc|he...|el|bc",
        ),
        (
            "{{ toPrettyJson (dict \"a\" (list 1 \"<\")) }} {{ toRawJson \"<\" }}",
            "{\n  \"a\": [\n    1,\n    \"\\u003c\"\n  ]\n} \"<\"",
        ),
        (
            "{{ derivePassword 1 \"long\" \"password\" \"user\" \"example.com\" }}",
            "ZedaFaxcZaso9*",
        ),
        (
            "{{ decryptAES \"secretkey\" (encryptAES \"secretkey\" \"plaintext\") }} {{ (htpasswd \"u\" \"p\") | trunc 9 }}",
            "plaintext u:$2a$10$",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(run(text).as_deref(), Ok(*expected), "{text}");
    }
}

#[test]
fn what_grows_is_bounded() {
    let cases = [
        "{{ repeat 1000000000 \"aaaaaaaaaa\" }}",
        "{{ until 2000000000 }}",
        "{{ $s := \"x\" }}{{ range until 64 }}{{ $s = print $s $s }}{{ $s = replace \"x\" \"xx\" $s }}{{ end }}",
        "{{ $l := list 1 }}{{ range until 100000 }}{{ $l = concat $l $l }}{{ end }}",
        "{{ randAlphaNum 1000000000 }}",
        "{{ nindent 1000000000 \"a\" }}",
    ];
    for text in cases {
        let limits = Limits {
            work: 5_000_000,
            ..Limits::default()
        };
        let error = run_with(&functions(), limits, text, &serde_json::json!({})).unwrap_err();
        assert!(error.contains("limit of"), "{text}: {error}");
    }
}

#[test]
fn a_map_within_itself_is_neither_printed_nor_leaked() {
    for tail in [
        "{{ $d }}",
        "{{ mustToJson $d }}",
        "{{ deepCopy $d }}",
        "{{ deepEqual $d (deepCopy $d) }}",
    ] {
        let text = format!("{{{{ $d := dict }}}}{{{{ $_ := set $d \"d\" $d }}}}{tail}");
        assert!(run(&text).is_err(), "{text}");
    }
    // Deep, not endless: dropped without recursion.
    let deep = "{{ $d := dict }}{{ range until 100000 }}{{ $d = dict \"a\" $d }}{{ end }}ok";
    assert_eq!(run(deep).as_deref(), Ok("ok"));
}

#[test]
fn certificates_are_made_and_signed() {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    let text = "{{ $ca := genCA \"my ca\" 365 }}{{ $c := genSignedCert \"host\" (list \"10.0.0.1\") (list \"a.b\" \"c\") 30 $ca }}{{ $ca.Cert }}|{{ $c.Cert }}|{{ $c.Key }}|{{ (buildCustomCert (b64enc $c.Cert) (b64enc $c.Key)).Key }}";
    let printed = run(text).unwrap();
    let parts: Vec<&str> = printed.split('|').collect();
    assert_eq!(parts[2], parts[3]);
    let der = |pem: &str| {
        use base64::Engine;
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        base64::engine::general_purpose::STANDARD.decode(body).unwrap()
    };
    let (authority, certificate) = (der(parts[0]), der(parts[1]));
    // The signature covers the first of the three parts and verifies with the key of the authority.
    let content = |bytes: &[u8]| -> (Vec<u8>, Vec<u8>) {
        let header = 4;
        let inner = &bytes[header..];
        let length = 4 + usize::from(u16::from_be_bytes([inner[2], inner[3]]));
        (inner[..length].to_vec(), bytes[bytes.len() - 256..].to_vec())
    };
    let key_at = authority
        .windows(4)
        .position(|window| window == [0x30, 0x82, 0x01, 0x0a])
        .unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &authority[key_at..key_at + 270]);
    for bytes in [&authority, &certificate] {
        let (body, signature) = content(bytes);
        public.verify(&body, &signature).unwrap();
    }
}

#[test]
fn keys_of_other_kinds_sign_too() {
    for kind in ["ecdsa", "ed25519"] {
        let text = format!(
            "{{{{ $k := genPrivateKey \"{kind}\" }}}}{{{{ $ca := genCAWithKey \"ca\" 1 $k }}}}{{{{ (genSignedCertWithKey \"x\" nil nil 1 $ca $k).Cert }}}}"
        );
        assert!(
            run(&text)
                .unwrap()
                .starts_with("-----BEGIN CERTIFICATE-----\nMII"),
            "{kind}"
        );
    }
    assert_eq!(run("{{ genPrivateKey \"x\" }}").as_deref(), Ok("Unknown type x"));
}
