//! Images are read back by a reader of the standard written here, and by real ones where there are any.

use std::collections::BTreeMap;
use std::process::Command;

use super::*;

fn files() -> Vec<File> {
    vec![
        File::new("user-data", "#cloud-config\nhostname: web\n"),
        File::new("meta-data", "{\"instance-id\":\"web\"}"),
        File::new("openstack/latest/user_data", vec![7; 5000]),
        File::new("openstack/latest/empty", ""),
        File::new("META-DATA", "the same name but for its case"),
        File::new("Grüße.txt", "not ASCII"),
        File::new(
            format!("{}.conf", "k".repeat(248)),
            "the longest key of a ConfigMap",
        ),
        File::new("x".repeat(120), "a name that just fits into no record"),
    ]
}

/// One tree of an image: files by path.
#[derive(Debug, Default, PartialEq)]
struct Read {
    label: String,
    files: BTreeMap<String, Vec<u8>>,
}

fn le32(bytes: &[u8]) -> usize {
    let (little, big) = bytes[..8].split_at(4);
    let value = u32::from_le_bytes(little.try_into().unwrap());
    assert_eq!(
        value,
        u32::from_be_bytes(big.try_into().unwrap()),
        "both byte orders say the same"
    );
    value as usize
}

fn decode(image: &[u8], joliet: bool) -> Read {
    let at = (16 + usize::from(joliet)) * SECTOR;
    let descriptor = &image[at..at + SECTOR];
    assert_eq!(&descriptor[1..6], b"CD001");
    assert_eq!(
        le32(&descriptor[80..]) * SECTOR,
        image.len(),
        "the size in the descriptor is the image's"
    );
    let label = text(&descriptor[40..72], joliet);
    let mut read = Read {
        label: label.trim_end_matches([' ', '\0']).to_owned(),
        ..Read::default()
    };
    directory(image, &descriptor[156..190], "", joliet, &mut read);
    read
}

fn text(bytes: &[u8], wide: bool) -> String {
    if wide {
        let units: Vec<u16> = bytes
            .chunks(2)
            .map(|it| u16::from_be_bytes([it[0], it[1]]))
            .collect();
        String::from_utf16(&units).unwrap()
    } else {
        String::from_utf8(bytes.to_vec()).unwrap()
    }
}

fn directory(image: &[u8], own: &[u8], path: &str, joliet: bool, read: &mut Read) {
    let (start, size) = (le32(&own[2..]) * SECTOR, le32(&own[10..]));
    let mut at = 0;
    let mut count = 0_u32;
    let mut last: Vec<u8> = Vec::new();
    while at < size {
        let record = &image[start + at..];
        let length = usize::from(record[0]);
        if length == 0 {
            at = (at + 1).next_multiple_of(SECTOR);
            continue;
        }
        assert!(at % SECTOR + length <= SECTOR, "a record lies across sectors");
        let record = &record[..length];
        at += length;
        count += 1;
        let name = &record[33..33 + usize::from(record[32])];
        if count <= 2 {
            assert_eq!(u32::from(name[0]), count - 1);
            continue;
        }
        assert!(last < name.to_vec(), "records are sorted");
        last = name.to_vec();
        let after = (33 + name.len()).next_multiple_of(2);
        let shown = if joliet {
            text(name, true)
        } else {
            rock_ridge_name(image, &record[after..])
        };
        let path = if path.is_empty() {
            shown
        } else {
            format!("{path}/{shown}")
        };
        if record[25] & 2 == 2 {
            directory(image, record, &path, joliet, read);
        } else {
            let (start, size) = (le32(&record[2..]) * SECTOR, le32(&record[10..]));
            read.files.insert(path, image[start..start + size].to_vec());
        }
    }
}

fn rock_ridge_name(image: &[u8], area: &[u8]) -> String {
    let mut name = Vec::new();
    let mut areas = vec![area];
    while let Some(mut area) = areas.pop() {
        while area.len() >= 4 && area[2] > 0 {
            let (entry, rest) = area.split_at(usize::from(area[2]));
            area = rest;
            match &entry[..2] {
                b"NM" => name.extend(&entry[5..]),
                b"PX" => assert!([0o040_555, 0o100_400].contains(&le32(&entry[4..]))),
                b"CE" => {
                    let start = le32(&entry[4..]) * SECTOR + le32(&entry[12..]);
                    areas.push(&image[start..start + le32(&entry[20..])]);
                }
                _ => {}
            }
        }
    }
    String::from_utf8(name).unwrap()
}

fn expected() -> BTreeMap<String, Vec<u8>> {
    files().into_iter().map(|it| (it.path, it.content)).collect()
}

#[test]
fn both_trees_lead_to_the_files() {
    let image = write("cidata", &files()).unwrap();
    let plain = decode(&image, false);
    assert_eq!(plain.label, "cidata");
    assert_eq!(plain.files, expected());
    let joliet = decode(&image, true);
    assert_eq!(joliet.label, "cidata");
    let contents: Vec<&Vec<u8>> = joliet.files.values().collect();
    assert_eq!(contents.len(), files().len());
    assert_eq!(joliet.files["Grüße.txt"], b"not ASCII");
    assert_eq!(joliet.files["openstack/latest/user_data"], vec![7; 5000]);
    // The label where the smallest of guests look for it.
    assert_eq!(&image[32808..32814], b"cidata");
}

#[test]
fn many_files_need_many_sectors() {
    let many: Vec<File> = (0..500)
        .map(|it| File::new(format!("dir/key-{it:04}.yaml"), format!("{it}")))
        .collect();
    let image = write("cfgdata", &many).unwrap();
    for joliet in [false, true] {
        let read = decode(&image, joliet);
        assert_eq!(read.files.len(), 500);
        assert_eq!(read.files["dir/key-0499.yaml"], b"499");
    }
}

#[test]
fn the_same_files_make_the_same_bytes() {
    let mut reversed = files();
    reversed.reverse();
    assert_eq!(write("cidata", &files()), write("cidata", &reversed));
    assert_eq!(
        decode(&write("config-2", &[]).unwrap(), false).files,
        BTreeMap::new()
    );
}

#[test]
fn what_cannot_be_written_is_refused() {
    let file = |path: &str| vec![File::new(path, "")];
    let cases: Vec<(&str, Vec<File>, &str)> = vec![
        ("", vec![], "the label \"\" of a disk of files must be"),
        ("ä", vec![], "the label \"ä\""),
        ("thirty-three-characters-are-too-many", vec![], "the label"),
        ("a", file(""), "leads elsewhere"),
        ("a", file("../etc/passwd"), "leads elsewhere"),
        ("a", file("/etc"), "leads elsewhere"),
        ("a", file("a\0b"), "zero byte"),
        ("a", file(&"n".repeat(256)), "more than 255 bytes"),
        ("a", file("1/2/3/4/5/6/7/8/9"), "too deep"),
        ("a", [file("x"), file("x")].concat(), "twice"),
        ("a", [file("x"), file("x/y")].concat(), "twice"),
        (
            "a",
            vec![File::new("big", vec![0; MAX_CONTENT + 1])],
            "has room for",
        ),
        (
            "a",
            (0..=MAX_FILES).map(|it| File::new(it.to_string(), "")).collect(),
            "has room for",
        ),
    ];
    for (label, files, reason) in cases {
        let error = write(label, &files).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// Real readers, each with how it lists paths. All that are there must agree.
#[test]
fn real_readers_read_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seed.iso");
    std::fs::write(&path, write("cidata", &files()).unwrap()).unwrap();
    let path = path.to_str().unwrap();
    let readers: [(&str, Vec<&str>); 3] = [
        ("bsdtar", vec!["-tf", path]),
        ("isoinfo", vec!["-R", "-f", "-i", path]),
        ("xorriso", vec!["-indev", path, "-find", "/"]),
    ];
    let mut found = 0;
    for (reader, arguments) in readers {
        let Ok(output) = Command::new(reader).args(arguments).output() else {
            continue;
        };
        found += 1;
        let listed = String::from_utf8_lossy(&output.stdout);
        for file in files().iter().filter(|it| it.path.is_ascii()) {
            assert!(
                listed.contains(&file.path),
                "{reader} does not see {}:\n{listed}",
                file.path
            );
        }
    }
    if let Ok(output) = Command::new("isoinfo")
        .args(["-R", "-x", "/openstack/latest/user_data", "-i", path])
        .output()
    {
        assert_eq!(output.stdout, vec![7; 5000], "isoinfo reads another content");
        let output = Command::new("isoinfo").args(["-d", "-i", path]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("Volume id: cidata"), "{told}");
        assert!(
            told.contains("Joliet with UCS level 3") && told.contains("Rock Ridge"),
            "{told}"
        );
    }
    if found == 0 {
        fairway_machines_required::skipped("neither bsdtar nor isoinfo nor xorriso is installed");
    }
}
